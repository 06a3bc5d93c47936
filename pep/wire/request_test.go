package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pepvault/pep"
	"pepvault/vault"
)

var testLimits = Limits{RecordBytes: 64, Foreign: true}

func iq(kind, content string) string {
	return "<iq type='" + kind + "' from='alice@localhost/phone' to='vault.localhost' id='1'>" + content + "</iq>"
}

func pubsub(content string) string {
	return "<pubsub xmlns='http://jabber.org/protocol/pubsub'>" + content + "</pubsub>"
}

func owner(content string) string {
	return "<pubsub xmlns='http://jabber.org/protocol/pubsub#owner'>" + content + "</pubsub>"
}

func publish(item string) string { return iq("set", pubsub("<publish node='n'>"+item+"</publish>")) }

func record(attrs, text string) string {
	return publish("<item id='a'><record xmlns='urn:pepvault:record:0'" + attrs + ">" + text + "</record></item>")
}

func foreign(payload string) string { return publish("<item id='a'>" + payload + "</item>") }

func native(data string) vault.Payload {
	return vault.Payload{Form: vault.Native, Data: []byte(data)}
}

func element0(data string) vault.Payload {
	return vault.Payload{Form: vault.Foreign, Data: []byte(data)}
}

const rsmSet = "<set xmlns='http://jabber.org/protocol/rsm'>"

func TestDecodeRequest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		raw  string
		want Call
	}{
		"ping":    {iq("get", "<ping xmlns='urn:xmpp:ping'/>"), Ping{}},
		"version": {iq("get", "<query xmlns='jabber:iq:version'/>"), Version{}},
		"stream namespace repeated": {
			"<iq xmlns='jabber:component:accept' type='get' id='1'><ping xmlns='urn:xmpp:ping'/></iq>", Ping{}},
		"client namespace, white space": {
			"<iq xmlns='jabber:client' type='get'>\n <ping xmlns='urn:xmpp:ping'/>\n</iq>\n", Ping{}},
		"prefixed pubsub": {
			iq("get", "<p:pubsub xmlns:p='http://jabber.org/protocol/pubsub'><p:items node='n'/></p:pubsub>"),
			pep.Items{Node: "n"}},

		"publish native": {
			record(" key-version='3'", "aGVsbG8="),
			pep.Publish{Node: "n", Items: []pep.Item{{ID: "a", KeyVersion: 3, Namespace: nsRecord, Payload: native("hello")}}}},
		"publish highest key version": {
			record(" key-version='2147483647'", "aGVs"),
			pep.Publish{Node: "n", Items: []pep.Item{{ID: "a", KeyVersion: 1<<31 - 1, Namespace: nsRecord, Payload: native("hel")}}}},
		"publish with state and an unknown extension": {
			iq("set", pubsub("<publish node='n'><item><x xmlns='u'/></item></publish><state xmlns='urn:pepvault:sync:0'/><y xmlns='z'>t<w/></y>")),
			pep.Publish{Node: "n", State: true, Items: []pep.Item{{Namespace: "u", Payload: element0("<x xmlns='u'/>")}}}},
		"publish several": {
			publish("<item id='a'><x xmlns='u' key-version='4'/></item>\n<item id='b' publisher='eve@localhost'><y xmlns='u'/></item>"),
			pep.Publish{Node: "n", Items: []pep.Item{
				{ID: "a", KeyVersion: 4, Namespace: "u", Payload: element0("<x xmlns='u' key-version='4'/>")},
				{ID: "b", Namespace: "u", Payload: element0("<y xmlns='u'/>")}}}},
		"retract": {
			iq("set", pubsub("<retract node='n' notify='true'><item id='a'/><item id='b'/></retract>")),
			pep.Retract{Node: "n", Notify: true, IDs: []string{"a", "b"}}},
		"retract with state": {
			iq("set", pubsub("<retract node='n'><item id='a'/></retract><state xmlns='urn:pepvault:sync:0'/>")),
			pep.Retract{Node: "n", IDs: []string{"a"}, State: true}},
		"items":           {iq("get", pubsub("<items node='n'/>")), pep.Items{Node: "n"}},
		"items by id":     {iq("get", pubsub("<items node='n'><item id='a'/><item id='a'/></items>")), pep.Items{Node: "n", IDs: []string{"a", "a"}}},
		"items max":       {iq("get", pubsub("<items node='n' max_items='10' subid=''/>")), pep.Items{Node: "n", Max: 10}},
		"items huge max":  {iq("get", pubsub("<items node='n' max_items='99999999999999999999'/>")), pep.Items{Node: "n", Max: 1<<31 - 1}},
		"items page":      {iq("get", pubsub("<items node='n'/>"+rsmSet+"<max>10</max><after>u&amp;1</after></set>")), pep.Items{Node: "n", Page: &pep.PageRequest{Max: 10, After: "u&1"}}},
		"items count":     {iq("get", pubsub("<items node='n'/>"+rsmSet+"<max>0</max></set>")), pep.Items{Node: "n", Page: &pep.PageRequest{}}},
		"items any page":  {iq("get", pubsub("<items node='n'/>"+rsmSet+"</set>")), pep.Items{Node: "n", Page: &pep.PageRequest{Max: -1}}},
		"delete":          {iq("set", owner("<delete node='n'/>")), pep.Delete{Node: "n"}},
		"subscribe":       {iq("set", pubsub("<subscribe node='n' jid='a@b/c'/>")), pep.Subscribe{Node: "n", JID: "a@b/c"}},
		"unsubscribe":     {iq("set", pubsub("<unsubscribe node='n' jid='a@b'/>")), pep.Unsubscribe{Node: "n", JID: "a@b"}},
		"service":         {iq("get", "<query xmlns='http://jabber.org/protocol/disco#info' node=''/>"), pep.DescribeService{}},
		"vault":           {iq("get", "<query xmlns='http://jabber.org/protocol/disco#info' node='n'/>"), pep.DescribeVault{Node: "n"}},
		"vaults":          {iq("get", "<query xmlns='http://jabber.org/protocol/disco#items'/>"), pep.ListVaults{}},
		"item names":      {iq("get", "<query xmlns='http://jabber.org/protocol/disco#items' node='n'/>"), ItemNames{pep.Items{Node: "n"}}},
		"item names page": {iq("get", "<query xmlns='http://jabber.org/protocol/disco#items' node='n'>"+rsmSet+"<max>5</max></set></query>"), ItemNames{pep.Items{Node: "n", Page: &pep.PageRequest{Max: 5}}}},
	}
	for what, test := range tests {
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

func TestDecodeRequestRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", vault.MaxNameBytes+1)
	item := "<item id='a'><x xmlns='u'/></item>"
	tests := map[string]struct {
		raw     string
		want    error
		feature string
	}{
		// The stanza.
		"empty":                 {"", pep.ErrBadRequest, ""},
		"no element":            {"text", pep.ErrBadRequest, ""},
		"message":               {"<message type='get'/>", pep.ErrBadRequest, ""},
		"iq of another":         {"<iq xmlns='u' type='get'><ping xmlns='urn:xmpp:ping'/></iq>", pep.ErrBadRequest, ""},
		"type result":           {iq("result", "<ping xmlns='urn:xmpp:ping'/>"), pep.ErrBadRequest, ""},
		"no type":               {"<iq><ping xmlns='urn:xmpp:ping'/></iq>", pep.ErrBadRequest, ""},
		"no child":              {iq("get", ""), pep.ErrBadRequest, ""},
		"two children":          {iq("get", "<ping xmlns='urn:xmpp:ping'/><ping xmlns='urn:xmpp:ping'/>"), pep.ErrBadRequest, ""},
		"two unknown children":  {iq("get", "<a xmlns='u'/><b xmlns='u'/>"), pep.ErrBadRequest, ""},
		"text":                  {iq("get", "hello"), pep.ErrBadRequest, ""},
		"text beside the child": {iq("get", "x<ping xmlns='urn:xmpp:ping'/>"), pep.ErrBadRequest, ""},
		"stream child":          {iq("set", "<stream:error/>"), pep.ErrUnknownNamespace, ""},
		"client child":          {iq("set", "<iq/>"), pep.ErrUnknownNamespace, ""},
		"unknown namespace":     {iq("get", "<a xmlns='u'><b/></a>"), pep.ErrUnknownNamespace, ""},
		"no namespace":          {iq("get", "<a xmlns=''/>"), pep.ErrUnknownNamespace, ""},
		"ping set":              {iq("set", "<ping xmlns='urn:xmpp:ping'/>"), pep.ErrBadRequest, ""},
		"pong":                  {iq("get", "<pong xmlns='urn:xmpp:ping'/>"), pep.ErrBadRequest, ""},

		// XML.
		"cut":                    {iq("get", "<ping xmlns='urn:xmpp:ping'/>")[:60], pep.ErrBadRequest, ""},
		"crossed tags":           {iq("get", "<a xmlns='u'><b></a></b>"), pep.ErrBadRequest, ""},
		"crossed prefixes":       {iq("get", "<p:a xmlns:p='u' xmlns:q='u'></q:a>"), pep.ErrBadRequest, ""},
		"two stanzas":            {iq("get", "<ping xmlns='urn:xmpp:ping'/>") + "<iq/>", pep.ErrBadRequest, ""},
		"text behind":            {iq("get", "<ping xmlns='urn:xmpp:ping'/>") + "x", pep.ErrBadRequest, ""},
		"comment":                {iq("get", "<!-- c --><ping xmlns='urn:xmpp:ping'/>"), pep.ErrBadRequest, ""},
		"instruction":            {iq("get", "<?a b?><ping xmlns='urn:xmpp:ping'/>"), pep.ErrBadRequest, ""},
		"doctype":                {"<!DOCTYPE iq [<!ENTITY e 'x'>]>" + iq("get", "<a xmlns='u'>&e;</a>"), pep.ErrBadRequest, ""},
		"entity":                 {iq("get", "<a xmlns='u'>&nbsp;</a>"), pep.ErrBadRequest, ""},
		"control character":      {iq("get", "<a xmlns='u'>\x01</a>"), pep.ErrBadRequest, ""},
		"control reference":      {iq("get", "<a xmlns='u'>&#1;</a>"), pep.ErrBadRequest, ""},
		"surrogate reference":    {iq("get", "<a xmlns='u'>&#xD800;</a>"), pep.ErrBadRequest, ""},
		"surrogate in attribute": {iq("get", "<a xmlns='u' b='&#55296;'/>"), pep.ErrBadRequest, ""},
		"not UTF-8":              {iq("get", "<a xmlns='u'>\xff</a>"), pep.ErrBadRequest, ""},
		"undeclared prefix":      {iq("get", "<p:a/>"), pep.ErrBadRequest, ""},
		"attribute twice":        {iq("get", "<a xmlns='u' b='1' b='2'/>"), pep.ErrBadRequest, ""},
		"attribute twice by namespace": {
			iq("get", "<a xmlns='u' xmlns:p='v' xmlns:q='v' p:b='1' q:b='2'/>"), pep.ErrBadRequest, ""},
		"prefix declared twice": {iq("get", "<a xmlns:p='v' xmlns:p='v'/>"), pep.ErrBadRequest, ""},
		"prefix undeclared":     {iq("get", "<a xmlns:p=''/>"), pep.ErrBadRequest, ""},
		"xmlns declared":        {iq("get", "<a xmlns:xmlns='v'/>"), pep.ErrBadRequest, ""},
		"xml moved":             {iq("get", "<a xmlns:xml='v'/>"), pep.ErrBadRequest, ""},
		"colon first":           {iq("get", "<:a/>"), pep.ErrBadRequest, ""},
		"colon last":            {iq("get", "<a xmlns='u' b:='1'/>"), pep.ErrBadRequest, ""},
		"digit behind prefix":   {iq("get", "<p:1 xmlns:p='u'/>"), pep.ErrBadRequest, ""},
		"too many elements":     {iq("get", "<a xmlns='u'>"+strings.Repeat("<b/>", maxElements)+"</a>"), pep.ErrPolicy, ""},
		"too deep":              {iq("get", strings.Repeat("<b>", maxDepth)+strings.Repeat("</b>", maxDepth)), pep.ErrPolicy, ""},
		"too many attributes":   {iq("get", "<a "+distinctAttrs(maxAttrs+1)+"/>"), pep.ErrBadRequest, ""},
		"payload attributes":    {foreign("<a " + distinctAttrs(maxAttrs+1) + "/>"), pep.ErrInvalidPayload, ""},

		// Pubsub.
		"no operation":         {iq("set", pubsub("")), pep.ErrBadRequest, ""},
		"text in pubsub":       {iq("set", pubsub("x<items node='n'/>")), pep.ErrBadRequest, ""},
		"two operations":       {iq("set", pubsub("<publish node='n'>"+item+"</publish><retract node='n'><item id='b'/></retract>")), pep.ErrBadRequest, ""},
		"unknown operation":    {iq("set", pubsub("<frobnicate/>")), pep.ErrUnsupported, ""},
		"operation of others":  {iq("set", pubsub("<delete xmlns='http://jabber.org/protocol/pubsub#owner' node='n'/>")), pep.ErrBadRequest, ""},
		"publish get":          {iq("get", pubsub("<publish node='n'>"+item+"</publish>")), pep.ErrBadRequest, ""},
		"items set":            {iq("set", pubsub("<items node='n'/>")), pep.ErrBadRequest, ""},
		"delete get":           {iq("get", owner("<delete node='n'/>")), pep.ErrBadRequest, ""},
		"manage subscriptions": {iq("get", owner("<subscriptions node='n'/>")), pep.ErrUnsupported, "manage-subscriptions"},
		"sync of the future":   {iq("set", pubsub("<publish node='n'>"+item+"</publish><expect xmlns='urn:pepvault:sync:1'/>")), pep.ErrUnsupported, "expect"},
		"chunk":                {iq("set", "<chunk xmlns='urn:pepvault:sync:0' download='d' seq='0' cursor='c'/>"), pep.ErrBadRequest, ""},
		"erase of something":   {iq("set", "<erase xmlns='urn:pepvault:account:0' node='n'/>"), pep.ErrBadRequest, ""},
		"erase by a question":  {iq("get", "<erase xmlns='urn:pepvault:account:0'/>"), pep.ErrBadRequest, ""},
		"redirect":             {iq("set", owner("<delete node='n'><redirect uri='u'/></delete>")), pep.ErrUnsupported, "redirect"},

		// Names.
		"publish without node":   {iq("set", pubsub("<publish>"+item+"</publish>")), pep.ErrNodeRequired, ""},
		"items without node":     {iq("get", pubsub("<items/>")), pep.ErrNodeRequired, ""},
		"retract without node":   {iq("set", pubsub("<retract><item id='a'/></retract>")), pep.ErrNodeRequired, ""},
		"delete without node":    {iq("set", owner("<delete/>")), pep.ErrNodeRequired, ""},
		"subscribe without node": {iq("set", pubsub("<subscribe jid='j'/>")), pep.ErrNodeRequired, ""},
		"empty node":             {iq("get", pubsub("<items node=''/>")), pep.ErrNodeRequired, ""},
		"long node":              {iq("get", pubsub("<items node='"+long+"'/>")), pep.ErrBadName, ""},
		"node with line feed":    {iq("get", pubsub("<items node='a&#10;b'/>")), pep.ErrBadName, ""},
		"node with C1 control":   {iq("get", pubsub("<items node='a&#x85;b'/>")), pep.ErrBadName, ""},
		"long disco node":        {iq("get", "<query xmlns='http://jabber.org/protocol/disco#info' node='"+long+"'/>"), pep.ErrBadName, ""},
		"long id":                {publish("<item id='" + long + "'><x xmlns='u'/></item>"), pep.ErrBadName, ""},
		"empty id":               {publish("<item id=''><x xmlns='u'/></item>"), pep.ErrBadName, ""},
		"retract long id":        {iq("set", pubsub("<retract node='n'><item id='"+long+"'/></retract>")), pep.ErrBadName, ""},
		"one id twice":           {publish(item + item), pep.ErrBadRequest, ""},
		"retract one id twice":   {iq("set", pubsub("<retract node='n'><item id='a'/><item id='a'/></retract>")), pep.ErrBadRequest, ""},

		// Items.
		"publish nothing":         {publish(""), pep.ErrItemRequired, ""},
		"publish something else":  {publish("<entry/>"), pep.ErrBadRequest, ""},
		"text in publish":         {publish("x" + item), pep.ErrBadRequest, ""},
		"no payload":              {publish("<item id='a'/>"), pep.ErrPayloadRequired, ""},
		"white payload":           {publish("<item id='a'> \n</item>"), pep.ErrPayloadRequired, ""},
		"second without payload":  {publish(item + "<item id='b'/>"), pep.ErrPayloadRequired, ""},
		"text payload":            {publish("<item id='a'>hello</item>"), pep.ErrInvalidPayload, ""},
		"CDATA payload":           {publish("<item id='a'><![CDATA[hello]]></item>"), pep.ErrInvalidPayload, ""},
		"text beside payload":     {publish("<item id='a'><x xmlns='u'/>hello</item>"), pep.ErrInvalidPayload, ""},
		"two payloads":            {publish("<item id='a'><x xmlns='u'/><y xmlns='u'/></item>"), pep.ErrInvalidPayload, ""},
		"retract nothing":         {iq("set", pubsub("<retract node='n'/>")), pep.ErrItemRequired, ""},
		"retract without id":      {iq("set", pubsub("<retract node='n'><item/></retract>")), pep.ErrItemRequired, ""},
		"retract with payload":    {iq("set", pubsub("<retract node='n'><item id='a'><x xmlns='u'/></item></retract>")), pep.ErrBadRequest, ""},
		"items without id":        {iq("get", pubsub("<items node='n'><item/></items>")), pep.ErrItemRequired, ""},
		"max_items 0":             {iq("get", pubsub("<items node='n' max_items='0'/>")), pep.ErrBadRequest, ""},
		"max_items negative":      {iq("get", pubsub("<items node='n' max_items='-1'/>")), pep.ErrBadRequest, ""},
		"max_items word":          {iq("get", pubsub("<items node='n' max_items='max'/>")), pep.ErrBadRequest, ""},
		"max_items empty":         {iq("get", pubsub("<items node='n' max_items=''/>")), pep.ErrBadRequest, ""},
		"max_items and ids":       {iq("get", pubsub("<items node='n' max_items='1'><item id='a'/></items>")), pep.ErrBadRequest, ""},
		"page and ids":            {iq("get", pubsub("<items node='n'><item id='a'/></items>"+rsmSet+"</set>")), pep.ErrBadRequest, ""},
		"page max word":           {iq("get", pubsub("<items node='n'/>"+rsmSet+"<max>x</max></set>")), pep.ErrBadRequest, ""},
		"page max negative":       {iq("get", pubsub("<items node='n'/>"+rsmSet+"<max>-3</max></set>")), pep.ErrBadRequest, ""},
		"page max twice":          {iq("get", pubsub("<items node='n'/>"+rsmSet+"<max>3</max><max>3</max></set>")), pep.ErrBadRequest, ""},
		"two pages":               {iq("get", pubsub("<items node='n'/>"+rsmSet+"</set>"+rsmSet+"</set>")), pep.ErrBadRequest, ""},
		"page of a retract":       {iq("set", pubsub("<retract node='n'><item id='a'/></retract>"+rsmSet+"</set>")), pep.ErrBadRequest, ""},
		"items subid":             {iq("get", pubsub("<items node='n' subid='s'/>")), pep.ErrNotSubscribed, ""},
		"unsubscribe subid":       {iq("set", pubsub("<unsubscribe node='n' jid='j' subid='s'/>")), pep.ErrNotSubscribed, ""},
		"subscribe without jid":   {iq("set", pubsub("<subscribe node='n'/>")), pep.ErrInvalidJID, ""},
		"unsubscribe without jid": {iq("set", pubsub("<unsubscribe node='n'/>")), pep.ErrInvalidJID, ""},
		"state of items":          {iq("get", pubsub("<items node='n'/><state xmlns='urn:pepvault:sync:0'/>")), pep.ErrBadRequest, ""},
		"state with cursor":       {iq("set", pubsub("<publish node='n'>"+item+"</publish><state xmlns='urn:pepvault:sync:0' cursor='c'/>")), pep.ErrBadRequest, ""},
		"state with content":      {iq("set", pubsub("<publish node='n'>"+item+"</publish><state xmlns='urn:pepvault:sync:0'><item/></state>")), pep.ErrBadRequest, ""},
		"two states":              {iq("set", pubsub("<publish node='n'>"+item+"</publish><state xmlns='urn:pepvault:sync:0'/><state xmlns='urn:pepvault:sync:0'/>")), pep.ErrBadRequest, ""},

		// Native records.
		"record without key version": {record("", "aGVs"), pep.ErrInvalidPayload, ""},
		"key version empty":          {record(" key-version=''", "aGVs"), pep.ErrInvalidPayload, ""},
		"key version signed":         {record(" key-version='+3'", "aGVs"), pep.ErrInvalidPayload, ""},
		"key version negative":       {record(" key-version='-3'", "aGVs"), pep.ErrInvalidPayload, ""},
		"key version zero first":     {record(" key-version='03'", "aGVs"), pep.ErrInvalidPayload, ""},
		"key version spaced":         {record(" key-version=' 3'", "aGVs"), pep.ErrInvalidPayload, ""},
		"key version word":           {record(" key-version='three'", "aGVs"), pep.ErrInvalidPayload, ""},
		"key version in Arabic":      {record(" key-version='٣'", "aGVs"), pep.ErrInvalidPayload, ""},
		"key version too high":       {record(" key-version='2147483648'", "aGVs"), pep.ErrInvalidPayload, ""},
		"key version beyond 64 bits": {record(" key-version='18446744073709551619'", "aGVs"), pep.ErrInvalidPayload, ""},
		"record attribute":           {record(" key-version='3' x='1'", "aGVs"), pep.ErrInvalidPayload, ""},
		"record language":            {record(" key-version='3' xml:lang='en'", "aGVs"), pep.ErrInvalidPayload, ""},
		"key version of others":      {record(" xmlns:p='v' p:key-version='3'", "aGVs"), pep.ErrInvalidPayload, ""},
		"record with child":          {record(" key-version='3'", "aGVs<x/>"), pep.ErrInvalidPayload, ""},
		"record with comment":        {record(" key-version='3'", "aGVs<!-- -->"), pep.ErrInvalidPayload, ""},
		"other element of ours":      {foreign("<recard xmlns='urn:pepvault:record:0' key-version='3'>aGVs</recard>"), pep.ErrInvalidPayload, ""},
		"base64 empty":               {record(" key-version='3'", ""), pep.ErrInvalidPayload, ""},
		"base64 space":               {record(" key-version='3'", "aG Vs"), pep.ErrInvalidPayload, ""},
		"base64 space around":        {record(" key-version='3'", " aGVs "), pep.ErrInvalidPayload, ""},
		"base64 line feed":           {record(" key-version='3'", "aGVs\naGVs"), pep.ErrInvalidPayload, ""},
		"base64 line feeds by four":  {record(" key-version='3'", "aGVs\n\n\n\n"), pep.ErrInvalidPayload, ""},
		"base64 carriage return":     {record(" key-version='3'", "aGVs&#13;&#13;&#13;&#13;"), pep.ErrInvalidPayload, ""},
		"base64 no padding":          {record(" key-version='3'", "aGVsbG8"), pep.ErrInvalidPayload, ""},
		"base64 padding inside":      {record(" key-version='3'", "aGVsbG8=aGVs"), pep.ErrInvalidPayload, ""},
		"base64 padding alone":       {record(" key-version='3'", "===="), pep.ErrInvalidPayload, ""},
		"base64 trailing bits":       {record(" key-version='3'", "aGVsbG9="), pep.ErrInvalidPayload, ""},
		"base64 alphabet":            {record(" key-version='3'", "aG-_"), pep.ErrInvalidPayload, ""},
		"record too big":             {record(" key-version='3'", strings.Repeat("aGVs", 22)), pep.ErrPayloadTooBig, ""},
		"record much too big":        {record(" key-version='3'", strings.Repeat("aGVs", 1000)), pep.ErrPayloadTooBig, ""},

		// Foreign payloads.
		"foreign too big":             {foreign("<x xmlns='u'>" + strings.Repeat("x", 50) + "</x>"), pep.ErrPayloadTooBig, ""},
		"foreign too big by escaping": {foreign("<x xmlns='u'>" + strings.Repeat(">", 20) + "</x>"), pep.ErrPayloadTooBig, ""},
		"raw CR in text":              {foreign("<x xmlns='u'>a\rb</x>"), pep.ErrInvalidPayload, ""},
		"raw CR LF in text":           {foreign("<x xmlns='u'>a\r\nb</x>"), pep.ErrInvalidPayload, ""},
		"CR in text":                  {foreign("<x xmlns='u'>a&#13;b</x>"), pep.ErrInvalidPayload, ""},
		"hexadecimal CR in text":      {foreign("<x xmlns='u'>a&#xD;b</x>"), pep.ErrInvalidPayload, ""},
		"CR in CDATA":                 {foreign("<x xmlns='u'><![CDATA[a\rb]]></x>"), pep.ErrInvalidPayload, ""},
		"raw TAB in attribute":        {foreign("<x xmlns='u' a='b\tc'/>"), pep.ErrInvalidPayload, ""},
		"raw LF in attribute":         {foreign("<x xmlns='u'><y a='b\nc'/></x>"), pep.ErrInvalidPayload, ""},
		"raw CR in attribute":         {foreign("<x xmlns='u' a='b\rc'/>"), pep.ErrInvalidPayload, ""},
		"TAB in attribute":            {foreign("<x xmlns='u' a='b&#9;c'/>"), pep.ErrInvalidPayload, ""},
		"LF in attribute":             {foreign("<x xmlns='u' a='b&#10;c'/>"), pep.ErrInvalidPayload, ""},
		"CR in attribute":             {foreign("<x xmlns='u' a='b&#13;c'/>"), pep.ErrInvalidPayload, ""},
		"LF in namespace":             {foreign("<x xmlns='u&#10;v'/>"), pep.ErrInvalidPayload, ""},
		"comment in payload":          {foreign("<x xmlns='u'><!-- c --></x>"), pep.ErrInvalidPayload, ""},
		"comment beside payload":      {foreign("<!-- c --><x xmlns='u'/>"), pep.ErrInvalidPayload, ""},
		"instruction in payload":      {foreign("<x xmlns='u'><?a b?></x>"), pep.ErrInvalidPayload, ""},
		"payload prefix":              {foreign("<p:x/>"), pep.ErrInvalidPayload, ""},
		"payload child prefix":        {foreign("<x xmlns='u'><p:y/></x>"), pep.ErrInvalidPayload, ""},
		"payload attribute prefix":    {foreign("<x xmlns='u' p:y='1'/>"), pep.ErrInvalidPayload, ""},
		"prefix ends with element":    {foreign("<x xmlns='u'><y xmlns:p='v'/><p:z/></x>"), pep.ErrInvalidPayload, ""},
		"payload many namespaces":     {foreign("<x " + declarations(maxScope+1) + "/>"), pep.ErrInvalidPayload, ""},
		"CDATA end in text":           {foreign("<x xmlns='u'>a]]>b</x>"), pep.ErrBadRequest, ""},
		"CDATA end in a record":       {record(" key-version='3'", "aGVs]]>"), pep.ErrBadRequest, ""},
		"payload attribute twice":     {foreign("<x xmlns='u' a='1' a='1'/>"), pep.ErrBadRequest, ""},
		"payload character":           {foreign("<x xmlns='u'>&#xFFFE;</x>"), pep.ErrBadRequest, ""},
		"foreign key version high":    {foreign("<x xmlns='u' key-version='2147483648'/>"), pep.ErrInvalidPayload, ""},
		"foreign key version below":   {foreign("<x xmlns='u' key-version='-1'/>"), pep.ErrInvalidPayload, ""},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			got, err := DecodeRequest([]byte(test.raw), testLimits)
			if !errors.Is(err, test.want) {
				t.Fatalf("got %v, %v; want %v for %.300s", got, err, test.want, test.raw)
			}
			refusal := new(pep.Refusal)
			errors.As(err, &refusal)
			if refusal.Feature != test.feature {
				t.Errorf("got feature %q, want %q", refusal.Feature, test.feature)
			}
		})
	}
}

func declarations(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("xmlns:p")
		b.WriteString(strings.Repeat("x", i))
		b.WriteString("='u' ")
	}
	return b.String()
}

func distinctAttrs(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d='' ", i)
	}
	return b.String()
}

func TestLimits(t *testing.T) {
	t.Parallel()
	fits := record(" key-version='3'", "aGVs"+strings.Repeat("aGVs", 20)+"aA==")
	if _, err := DecodeRequest([]byte(fits), testLimits); err != nil {
		t.Errorf("64 bytes of 64: %v", err)
	}
	_, err := DecodeRequest([]byte(record(" key-version='3'", strings.Repeat("aGVs", 21)+"aGU=")), testLimits)
	if err == nil || !strings.Contains(err.Error(), "64 bytes") {
		t.Errorf("65 bytes of 64: %v names no limit", err)
	}
	_, err = DecodeRequest([]byte(foreign("<x xmlns='u'/>")), Limits{RecordBytes: 64})
	if !errors.Is(err, pep.ErrInvalidPayload) {
		t.Errorf("foreign payload where only ours are taken: %v", err)
	}
	if _, err = DecodeRequest([]byte(foreign("<x xmlns='u'>"+strings.Repeat("y", 9000)+"</x>")), Limits{Foreign: true}); err != nil {
		t.Errorf("no bound: %v", err)
	}
}

// One long namespace on the stanza would be copied into each payload.
func TestPayloadsTogetherAreBounded(t *testing.T) {
	t.Parallel()
	raw := "<iq type='set' id='1' xmlns:p='" + strings.Repeat("u", 60_000) + "'>" +
		pubsub("<publish node='n'>"+strings.Repeat("<item><x/></item>", 1000)+"</publish>") + "</iq>"
	_, err := DecodeRequest([]byte(raw), Limits{RecordBytes: 65536, Foreign: true})
	if !errors.Is(err, pep.ErrPayloadTooBig) {
		t.Errorf("got %v", err)
	}
}

// No text of a refusal repeats what the device wrote.
func TestRefusalsKeepSecrets(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		foreign("<x xmlns='u'>&s3cret;</x>"), foreign("<s3cret:x/>"), foreign("<x xmlns='u' a='s3cret&#10;'/>"),
		record(" key-version='s3cret'", "aGVs"), record(" key-version='3'", "s3cret!"), publish("<item id='a'>s3cret</item>"),
		iq("get", pubsub("<items node='s3cret&#10;'/>")), iq("get", "<s3cret"),
	} {
		_, err := DecodeRequest([]byte(raw), testLimits)
		if err == nil || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q says %v", raw, err)
		}
	}
}

// The local part of a prefixed name is a name too; raw tokens let digits in.
func TestPrefixedNamesAreNames(t *testing.T) {
	t.Parallel()
	for _, payload := range []string{"<p:0 xmlns:p='x'/>", "<p:a xmlns:p='x' p:-b=''/>", "<p:\u00b7 xmlns:p='x'/>"} {
		raw := "<iq type='set' id='1'><pubsub xmlns='http://jabber.org/protocol/pubsub'><publish node='n'><item id='a'>" +
			payload + "</item></publish></pubsub></iq>"
		if call, err := DecodeRequest([]byte(raw), Limits{Foreign: true}); err == nil {
			t.Errorf("%s was taken: %v", payload, call)
		}
	}
}
