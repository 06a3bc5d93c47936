package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pepvault/pep"
)

func form(kind, fields string) string {
	return "<x xmlns='jabber:x:data' type='" + kind + "'>" + fields + "</x>"
}

func field(name string, values ...string) string {
	return "<field var='" + name + "'><value>" + strings.Join(values, "</value><value>") + "</value></field>"
}

func command(attrs, content string) string {
	return iq("set", "<command xmlns='http://jabber.org/protocol/commands' "+attrs+">"+content+"</command>")
}

// What clients write in other ways than we do (golden requests have ours).
func TestRequestsOfOthers(t *testing.T) {
	t.Parallel()
	item := "<item id='a'><x xmlns='u'/></item>"
	published := []pep.Item{{ID: "a", Namespace: "u", Payload: element0("<x xmlns='u'/>")}}
	title := pep.Form{Type: "t", Fields: []pep.Field{{Name: "pubsub#title", Values: []string{"T"}}}}
	typed := "<field var='FORM_TYPE'><value>t</value></field>"
	for what, test := range map[string]struct {
		raw  string
		want Call
	}{
		"create with an empty node": {iq("set", pubsub("<create node=''/>")), pep.Create{}},
		"create with the default":   {iq("set", pubsub("<create node='n'/><configure/>")), pep.Create{Node: "n"}},
		"create with an empty form": {iq("set", pubsub("<create node='n'/><configure>"+form("submit", "")+"</configure>")), pep.Create{Node: "n", Config: &pep.Form{}}},
		"create with more beside": {iq("set", pubsub("<create node='n'/><y xmlns='z'/><configure>"+form("submit", typed+field("pubsub#title", "T"))+"</configure>")),
			pep.Create{Node: "n", Config: &title}},
		"create of a type of old": {iq("set", pubsub("<create node='n' type='leaf'/>")), pep.Create{Node: "n"}},

		"whole form": {iq("set", owner("<configure node='n'>"+form("submit", "<title>a</title><instructions>b</instructions>"+
			"<field type='fixed'><value>c</value></field><field var='FORM_TYPE' type='hidden'><value>t</value></field>"+
			"<field var='pubsub#title' type='text-single' label='l'><desc>d</desc><required/><value>T</value>"+
			"<option label='o'><value>p</value></option></field>")+"</configure>")), pep.Configure{Node: "n", Form: title}},
		"form without type": {iq("set", owner("<configure node='n'>"+form("submit", field("a", "1", "", "2")+"<field var='b'/>")+"</configure>")),
			pep.Configure{Node: "n", Form: pep.Form{Fields: []pep.Field{{Name: "a", Values: []string{"1", "", "2"}}, {Name: "b"}}}}},
		"form in CDATA": {iq("set", owner("<configure node='n'>"+form("submit", field("a", "<![CDATA[<]]>&amp;"))+"</configure>")),
			pep.Configure{Node: "n", Form: pep.Form{Fields: []pep.Field{{Name: "a", Values: []string{"<&"}}}}}},
		"form among others":  {iq("set", owner("<configure node='n'><y xmlns='z'/>"+form("cancel", "")+"</configure>")), pep.Configure{Node: "n", Cancel: true}},
		"cancel with fields": {iq("set", owner("<configure node='n'>"+form("cancel", field("a", "1"))+"</configure>")), pep.Configure{Node: "n", Cancel: true}},

		"retract notify 1":     {iq("set", pubsub("<retract node='n' notify='1'><item id='a'/></retract>")), pep.Retract{Node: "n", IDs: []string{"a"}, Notify: true}},
		"retract notify false": {iq("set", pubsub("<retract node='n' notify='false'><item id='a'/></retract>")), pep.Retract{Node: "n", IDs: []string{"a"}}},
		"publish options and state": {iq("set", pubsub("<publish node='n'>"+item+"</publish><state xmlns='urn:pepvault:sync:0'/><publish-options>"+form("submit", typed+field("pubsub#title", "T"))+"</publish-options>")),
			pep.Publish{Node: "n", Items: published, Options: &title, State: true}},
		"namespace by prefix": {iq("set", pubsub("<publish node='n'><item id='a'><p:x xmlns:p='v'/></item></publish>")),
			pep.Publish{Node: "n", Items: []pep.Item{{ID: "a", Namespace: "v", Payload: element0("<p:x xmlns='http://jabber.org/protocol/pubsub' xmlns:p='v'/>")}}}},

		"empty after":        {iq("get", pubsub("<items node='n'/>"+rsmSet+"<after/><max>2</max></set>")), pep.Items{Node: "n", Page: &pep.PageRequest{Max: 2}}},
		"page behind max":    {iq("get", pubsub("<items node='n' max_items='9'/>"+rsmSet+"<max>2</max><before/></set>")), pep.Items{Node: "n", Max: 9, Page: &pep.PageRequest{Max: 2, Last: true}}},
		"page without bound": {iq("get", pubsub("<items node='n'/>"+rsmSet+"<before>u</before></set>")), pep.Items{Node: "n", Page: &pep.PageRequest{Max: -1, Before: "u"}}},
		"huge index":         {iq("get", pubsub("<items node='n'/>"+rsmSet+"<index>99999999999</index></set>")), pep.Items{Node: "n", Page: &pep.PageRequest{Max: -1, Index: number(1<<31 - 1)}}},

		"subscribe without options":  {iq("set", pubsub("<subscribe node='n' jid='j'/><options/>")), pep.Subscribe{Node: "n", JID: "j"}},
		"subscriptions of all nodes": {iq("get", pubsub("<subscriptions node=''/>")), pep.ListSubscriptions{}},
		"default options of all":     {iq("get", pubsub("<default/>")), pep.ReadOptions{}},

		"command without action": {command("node='c'", ""), Command{Node: "c", Action: "execute"}},
		"command with notes": {command("node='c' sessionid='s' action='next'", "<note/>"+form("submit", field("a", "1"))),
			Command{Node: "c", Session: "s", Action: "next", Form: &pep.Form{Fields: []pep.Field{{Name: "a", Values: []string{"1"}}}}}},
		"command with a closed form":     {command("node='c' sessionid='s'", form("cancel", "")), Command{Node: "c", Session: "s", Action: "cancel"}},
		"a vault that looks like a hash": {iq("get", "<query xmlns='http://jabber.org/protocol/disco#info' node='urn:x#"+ver115+"'/>"), pep.DescribeVault{Node: "urn:x#" + ver115}},
		"a vault that looks like commands": {iq("get", "<query xmlns='http://jabber.org/protocol/disco#info' node='http://jabber.org/protocol/commands#x'/>"),
			pep.DescribeVault{Node: "http://jabber.org/protocol/commands#x"}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeRequest([]byte(test.raw), testLimits)
			if err != nil {
				t.Fatalf("%v for %s", err, test.raw)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestOperationsRefused(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 600)
	item := "<item id='a'><x xmlns='u'/></item>"
	submit := form("submit", "")
	configure := func(content string) string { return iq("set", owner("<configure node='n'>"+content+"</configure>")) }
	for what, test := range map[string]struct {
		raw  string
		want error
	}{
		// Create and what stands behind it (§8.1).
		"create get":               {iq("get", pubsub("<create node='n'/>")), pep.ErrBadRequest},
		"create with content":      {iq("set", pubsub("<create node='n'><configure/></create>")), pep.ErrBadRequest},
		"create long":              {iq("set", pubsub("<create node='"+long+"'/>")), pep.ErrBadName},
		"configure first":          {iq("set", pubsub("<configure/><create node='n'/>")), pep.ErrBadRequest},
		"configure alone":          {iq("set", pubsub("<configure/>")), pep.ErrBadRequest},
		"configure with node":      {iq("set", pubsub("<create node='n'/><configure node='n'/>")), pep.ErrBadRequest},
		"configure twice":          {iq("set", pubsub("<create node='n'/><configure/><configure/>")), pep.ErrBadRequest},
		"configure of a publish":   {iq("set", pubsub("<publish node='n'>"+item+"</publish><configure/>")), pep.ErrBadRequest},
		"configure cancelled":      {iq("set", pubsub("<create node='n'/><configure>"+form("cancel", "")+"</configure>")), pep.ErrBadRequest},
		"configure of the owner":   {iq("set", owner("<create node='n'/>")), pep.ErrUnsupported},
		"create page":              {iq("set", pubsub("<create node='n'/>"+rsmSet+"</set>")), pep.ErrBadRequest},
		"create state":             {iq("set", pubsub("<create node='n'/><state xmlns='urn:pepvault:sync:0'/>")), pep.ErrBadRequest},
		"options of a create":      {iq("set", pubsub("<create node='n'/><publish-options>"+submit+"</publish-options>")), pep.ErrBadRequest},
		"publish-options first":    {iq("set", pubsub("<publish-options>"+submit+"</publish-options><publish node='n'>"+item+"</publish>")), pep.ErrBadRequest},
		"publish-options empty":    {iq("set", pubsub("<publish node='n'>"+item+"</publish><publish-options/>")), pep.ErrBadRequest},
		"publish-options to fill":  {iq("set", pubsub("<publish node='n'>"+item+"</publish><publish-options>"+form("form", "")+"</publish-options>")), pep.ErrBadRequest},
		"publish-options of items": {iq("get", pubsub("<items node='n'/><publish-options>"+submit+"</publish-options>")), pep.ErrBadRequest},

		// Configure, default, purge (§8.2, §8.3, §8.5).
		"configure without node":   {iq("get", owner("<configure/>")), pep.ErrNodeRequired},
		"configure get of a form":  {iq("get", owner("<configure node='n'>"+submit+"</configure>")), pep.ErrBadRequest},
		"configure without form":   {configure(""), pep.ErrBadRequest},
		"configure with two forms": {configure(submit + submit), pep.ErrBadRequest},
		"configure with text":      {configure("x" + submit), pep.ErrBadRequest},
		"configure with an item":   {configure("<item xmlns='http://jabber.org/protocol/pubsub'/>"), pep.ErrBadRequest},
		"form of another type":     {configure(form("result", "")), pep.ErrBadRequest},
		"form without a type":      {configure("<x xmlns='jabber:x:data'/>"), pep.ErrBadRequest},
		"form with text":           {configure(form("submit", "text")), pep.ErrBadRequest},
		"field without a name":     {configure(form("submit", "<field><value>1</value></field>")), pep.ErrBadRequest},
		"field twice":              {configure(form("submit", field("a", "1")+field("a", "1"))), pep.ErrBadRequest},
		"form type twice":          {configure(form("submit", field("FORM_TYPE", "a")+field("FORM_TYPE", "a"))), pep.ErrBadRequest},
		"two form types":           {configure(form("submit", field("FORM_TYPE", "a", "b"))), pep.ErrBadRequest},
		"empty form type":          {configure(form("submit", "<field var='FORM_TYPE'/>")), pep.ErrBadRequest},
		"many fields":              {configure(form("submit", manyFields(maxFields+1, 1))), pep.ErrPolicy},
		"many values":              {configure(form("submit", manyFields(2, maxValues/2+1))), pep.ErrPolicy},
		"default set":              {iq("set", owner("<default/>")), pep.ErrBadRequest},
		"default with a form":      {iq("get", owner("<default>"+submit+"</default>")), pep.ErrBadRequest},
		"purge without node":       {iq("set", owner("<purge/>")), pep.ErrNodeRequired},
		"purge with content":       {iq("set", owner("<purge node='n'><item/></purge>")), pep.ErrBadRequest},
		"purge of the public":      {iq("set", pubsub("<purge node='n'/>")), pep.ErrUnsupported},
		"retract notify maybe":     {iq("set", pubsub("<retract node='n' notify='maybe'><item id='a'/></retract>")), pep.ErrBadRequest},

		// Pages (XEP-0059).
		"before and after":   {iq("get", pubsub("<items node='n'/>"+rsmSet+"<before>a</before><after>b</after></set>")), pep.ErrBadRequest},
		"before and index":   {iq("get", pubsub("<items node='n'/>"+rsmSet+"<before/><index>1</index></set>")), pep.ErrBadRequest},
		"after twice":        {iq("get", pubsub("<items node='n'/>"+rsmSet+"<after>a</after><after>b</after></set>")), pep.ErrBadRequest},
		"index word":         {iq("get", pubsub("<items node='n'/>"+rsmSet+"<index>one</index></set>")), pep.ErrBadRequest},
		"index negative":     {iq("get", pubsub("<items node='n'/>"+rsmSet+"<index>-1</index></set>")), pep.ErrBadRequest},
		"first in a request": {iq("get", pubsub("<items node='n'/>"+rsmSet+"<first>a</first></set>")), pep.ErrBadRequest},
		"vaults page broken": {iq("get", "<query xmlns='http://jabber.org/protocol/disco#items'>"+rsmSet+"<max>x</max></set></query>"), pep.ErrBadRequest},

		// Subscriptions (§5.6, §6).
		"subscriptions set":          {iq("set", pubsub("<subscriptions/>")), pep.ErrBadRequest},
		"subscriptions with content": {iq("get", pubsub("<subscriptions><subscription/></subscriptions>")), pep.ErrBadRequest},
		"subscriptions long":         {iq("get", pubsub("<subscriptions node='"+long+"'/>")), pep.ErrBadName},
		"options without node":       {iq("get", pubsub("<options jid='j'/>")), pep.ErrNodeRequired},
		"options without jid":        {iq("get", pubsub("<options node='n'/>")), pep.ErrJIDRequired},
		"options set without jid":    {iq("set", pubsub("<options node='n'>"+submit+"</options>")), pep.ErrJIDRequired},
		"options subid":              {iq("get", pubsub("<options node='n' jid='j' subid='s'/>")), pep.ErrNotSubscribed},
		"options without form":       {iq("set", pubsub("<options node='n' jid='j'/>")), pep.ErrBadRequest},
		"options get of a form":      {iq("get", pubsub("<options node='n' jid='j'>"+submit+"</options>")), pep.ErrBadRequest},
		"options before subscribe":   {iq("set", pubsub("<options/><subscribe node='n' jid='j'/>")), pep.ErrBadRequest},
		"options with a node":        {iq("set", pubsub("<subscribe node='n' jid='j'/><options node='n'/>")), pep.ErrBadRequest},
		"options with a jid":         {iq("set", pubsub("<subscribe node='n' jid='j'/><options jid='j'/>")), pep.ErrBadRequest},
		"default options set":        {iq("set", pubsub("<default node='n'/>")), pep.ErrBadRequest},

		// Affiliations (§5.7, §8.9).
		"affiliations set":             {iq("set", pubsub("<affiliations node='n'/>")), pep.ErrBadRequest},
		"affiliations without node":    {iq("get", owner("<affiliations/>")), pep.ErrNodeRequired},
		"affiliations of nothing":      {iq("set", owner("<affiliations node='n'/>")), pep.ErrBadRequest},
		"affiliations get of changes":  {iq("get", owner("<affiliations node='n'><affiliation jid='j' affiliation='none'/></affiliations>")), pep.ErrBadRequest},
		"affiliation without jid":      {iq("set", owner("<affiliations node='n'><affiliation affiliation='none'/></affiliations>")), pep.ErrBadRequest},
		"affiliation without any":      {iq("set", owner("<affiliations node='n'><affiliation jid='j'/></affiliations>")), pep.ErrBadRequest},
		"affiliation with content":     {iq("set", owner("<affiliations node='n'><affiliation jid='j' affiliation='none'>x</affiliation></affiliations>")), pep.ErrBadRequest},
		"affiliation of another space": {iq("set", owner("<affiliations node='n'><affiliation xmlns='http://jabber.org/protocol/pubsub' jid='j' affiliation='none'/></affiliations>")), pep.ErrBadRequest},

		// Commands (XEP-0050).
		"command get":              {iq("get", "<command xmlns='http://jabber.org/protocol/commands' node='c'/>"), pep.ErrBadRequest},
		"command without node":     {command("action='execute'", ""), pep.ErrBadRequest},
		"command of another kind":  {iq("set", "<actions xmlns='http://jabber.org/protocol/commands'/>"), pep.ErrBadRequest},
		"command of unknown doing": {command("node='c' action='dance'", ""), ErrMalformedAction},
		"command with a result":    {command("node='c'", form("result", "")), ErrBadPayload},
		"command with a bad form":  {command("node='c'", form("submit", field("a", "1")+field("a", "1"))), ErrBadPayload},
		"command with text":        {command("node='c'", "hello"), pep.ErrBadRequest},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if got, err := DecodeRequest([]byte(test.raw), testLimits); !errors.Is(err, test.want) {
				t.Fatalf("got %v, %v; want %v for %.300s", got, err, test.want, test.raw)
			}
		})
	}
}

func manyFields(fields, values int) string {
	var b strings.Builder
	for i := range fields {
		b.WriteString(field(fmt.Sprint("f", i), strings.Split(strings.Repeat("v ", values-1)+"v", " ")...))
	}
	return b.String()
}
