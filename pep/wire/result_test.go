package wire

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pepvault/pep"
	"pepvault/vault"
)

// filledForm is a form as the service sends it, with every kind of content.
func filledForm() pep.Form {
	return pep.Form{Type: pep.FormConfig, Fields: []pep.Field{
		{Kind: "fixed", Values: []string{"What the vault may hold"}},
		{Name: "pubsub#title", Kind: "text-single", Label: "A title", Values: []string{"My <notes>"}},
		{Name: "pubsub#access_model", Kind: "list-single", Label: "Who may read", Values: []string{"whitelist"},
			Choices: []pep.Choice{{Value: "whitelist", Label: "Who is affiliated"}, {Value: "open & more"}}},
		{Name: "pubsub#type", Kind: "text-single"},
		{Name: "pubsub#contact", Kind: "jid-multi", Values: []string{"a@b", "", "c@d"}},
	}}
}

func TestResults(t *testing.T) {
	t.Parallel()
	foreignRecord := testRecord("f")
	foreignRecord.KeyVersion, foreignRecord.Payload = 0, element0("<note xmlns='urn:example:notes'>text</note>")
	config := filledForm()
	metaData := pep.Form{Type: pep.FormMetaData, Fields: []pep.Field{{Name: "pubsub#owner", Kind: "jid-single", Values: []string{"alice@localhost"}}}}
	usage := pep.Form{Type: pep.FormUsage, Fields: []pep.Field{{Name: "records", Kind: "text-single", Values: []string{"12"}}}}
	limits := pep.Form{Type: pep.FormLimits, Fields: []pep.Field{{Name: "max-records", Kind: "text-single", Values: []string{"256"}}}}
	tests := map[string]struct {
		call   Call
		answer any
	}{
		"published":          {pep.Publish{}, pep.Published{Node: "notes", IDs: []string{"a", "b&c"}}},
		"published state":    {pep.Publish{}, pep.Published{Node: "notes", IDs: []string{"a"}, State: testState()}},
		"published repeated": {pep.Publish{}, pep.Published{Node: "notes", IDs: []string{"a"}, State: &pep.State{Owner: "alice@localhost", Node: "notes", Cursor: "c-2"}}},
		"retracted":          {pep.Retract{}, pep.Retracted{}},
		"retracted state":    {pep.Retract{}, pep.Retracted{State: testState()}},
		"deleted":            {pep.Delete{}, pep.Deleted{}},
		"items":              {pep.Items{}, pep.ItemsPage{Node: "notes", Records: []vault.Record{testRecord("a"), foreignRecord}}},
		"items none":         {pep.Items{}, pep.ItemsPage{Node: "notes"}},
		"items page":         {pep.Items{}, pep.ItemsPage{Node: "notes", Records: []vault.Record{testRecord("a")}, Set: &pep.ResultSet{First: "u1", Last: "u1", Index: 3, Count: 7}}},
		"items count":        {pep.Items{}, pep.ItemsPage{Node: "notes", Set: &pep.ResultSet{Count: 7}}},
		"subscribed":         {pep.Subscribe{}, pep.Subscribed{Node: "notes", JID: "alice@localhost/phone"}},
		"unsubscribed":       {pep.Unsubscribe{}, pep.Unsubscribed{}},
		"disco vaults":       {pep.ListVaults{}, pep.VaultList{Vaults: []vault.Vault{{Key: vault.Key{Node: "a"}}, {Key: vault.Key{Node: "b"}, Config: vault.Config{Title: "B"}}}}},
		"disco service full": {pep.DescribeService{}, pep.ServiceInfo{Name: "pepvault", Features: []string{"publish", "rsm"},
			Others: []string{CommandsNode, "urn:pepvault:sync:0"}, Forms: []pep.Form{limits}}},
		"disco service":        {pep.DescribeService{}, pep.ServiceInfo{Name: "pepvault", Features: []string{"auto-create", "publish", "rsm"}}},
		"disco vault":          {pep.DescribeVault{}, pep.VaultInfo{Node: "notes", Title: "My <notes>", Forms: []pep.Form{metaData, usage}}},
		"disco vault untitled": {pep.DescribeVault{}, pep.VaultInfo{Node: "notes"}},
		"disco vaults page": {pep.ListVaults{}, pep.VaultList{Vaults: []vault.Vault{{Key: vault.Key{Node: "a"}}},
			Set: &pep.ResultSet{First: "u1", Last: "u1", Count: 2}}},
		"disco vaults none":  {pep.ListVaults{}, pep.VaultList{}},
		"disco names":        {ItemNames{}, ItemNamesPage{pep.ItemsPage{Node: "notes", Records: []vault.Record{{ID: "a"}, {ID: "b"}}, Set: &pep.ResultSet{First: "u1", Last: "u2", Count: 9}}}},
		"created":            {pep.Create{}, pep.Created{Node: "0190a2b4-4d3e"}},
		"config form":        {pep.ReadConfig{}, pep.ConfigForm{Node: "notes", Form: config}},
		"config default":     {pep.DefaultConfig{}, pep.ConfigForm{Form: config}},
		"configured":         {pep.Configure{}, pep.Configured{}},
		"purged":             {pep.Purge{}, pep.Purged{}},
		"subscriptions":      {pep.ListSubscriptions{}, pep.SubscriptionList{List: []pep.Subscribed{{Node: "a", JID: "alice@localhost"}, {Node: "b", JID: "alice@localhost/phone"}}}},
		"subscriptions one":  {pep.ListSubscriptions{}, pep.SubscriptionList{Node: "a", List: []pep.Subscribed{{Node: "a", JID: "alice@localhost"}}}},
		"subscriptions none": {pep.ListSubscriptions{}, pep.SubscriptionList{}},
		"options form":       {pep.ReadOptions{Node: "notes", JID: "alice@localhost"}, pep.OptionsForm{Node: "notes", JID: "alice@localhost", Form: config}},
		"options default":    {pep.ReadOptions{Node: "notes"}, pep.OptionsForm{Node: "notes", Form: config}},
		"options set":        {pep.SetOptions{}, pep.OptionsSet{}},
		"affiliations": {pep.ListAffiliations{}, pep.AffiliationList{List: []pep.NodeAffiliation{
			{Node: "a", Affiliation: vault.Owner}, {Node: "b", Affiliation: vault.Outcast}}}},
		"affiliations none": {pep.ListAffiliations{}, pep.AffiliationList{Node: "a"}},
		"affiliations vault": {pep.ReadAffiliations{}, pep.VaultAffiliations{Node: "notes", List: []vault.Affiliated{
			{Account: "alice@localhost", Affiliation: vault.Owner}, {Account: "bob@localhost", Affiliation: vault.Member},
			{Account: "carol@localhost", Affiliation: vault.Publisher}}}},
		"affiliations vault none": {pep.ReadAffiliations{}, pep.VaultAffiliations{Node: "notes"}},
		"affiliations set":        {pep.SetAffiliations{}, pep.AffiliationsSet{}},

		"command step": {Command{}, CommandResult{Node: CommandPrefix + "erase", Session: "s1", Status: "executing",
			Actions: []string{"prev", "complete"}, Execute: "complete", Notes: []CommandNote{{"warn", "All of it & for ever"}}, Form: &config}},
		"command done": {Command{}, CommandResult{Node: CommandPrefix + "usage", Session: "s1", Status: "completed",
			Form: &pep.Form{Fields: []pep.Field{{Name: "records", Kind: "text-single", Label: "Records", Values: []string{"12"}}}}}},
		"command canceled":    {Command{}, CommandResult{Node: CommandPrefix + "usage", Session: "s1", Status: "canceled"}},
		"disco commands":      {DescribeCommands{}, CommandInfo{Node: CommandsNode, Name: "Commands"}},
		"disco command":       {DescribeCommand{}, CommandInfo{Node: CommandPrefix + "usage", Name: "Usage"}},
		"disco commands list": {ListCommands{}, CommandList{Node: CommandsNode, Commands: []CommandInfo{{CommandPrefix + "usage", "Usage"}, {CommandPrefix + "erase", "Erase"}}}},
		"disco commands none": {ListCommands{}, CommandList{Node: CommandsNode}},

		"version": {Version{}, VersionInfo{Name: "pepvault", Version: "1.0 & more"}},
		"pong":    {Ping{}, Pong{}},
		"erased":  {pep.Erase{}, pep.Erased{Vaults: 2, Records: 300}},
	}
	for what, test := range tests {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			raw := AppendResult(nil, request, test.answer)
			golden(t, "result "+what, raw)
			got, err := DecodeReply(raw, test.call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.answer, got); diff != "" {
				t.Errorf("read again (-want +got)\n%s", diff)
			}
		})
	}
}

func TestDecodeReplyRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		raw  string
		call Call
	}{
		{"", Ping{}},
		{"<message/>", Ping{}},
		{"<iq type='get'/>", Ping{}},
		{"<iq type='result'/>", pep.Publish{}},
		{"<iq type='result'/>", pep.Items{}},
		{"<iq type='result'/>", pep.DescribeVault{}},
		{iq("result", pubsub("<items node='n'><item id='a'/></items>")), pep.Items{}},
		{iq("result", pubsub("<items node='n'/>"+rsmSet+"</set>")), pep.Items{}},
		{iq("result", pubsub("<subscription subscription='pending'/>")), pep.Subscribe{}},
		{iq("result", "<query xmlns='http://jabber.org/protocol/disco#info'/>"), pep.DescribeVault{}},
		{iq("result", "<query xmlns='http://jabber.org/protocol/disco#info'/>"), DescribeCommand{}},
		{iq("result", pubsub("<items node='n'/>"+rsmSet+"<first>u</first><count>3</count></set>")), pep.Items{}},
		{iq("result", ""), pep.Create{}},
		{iq("result", pubsub("<create/>")), pep.Create{}},
		{iq("result", owner("<configure node='n'/>")), pep.ReadConfig{}},
		{iq("result", owner("<configure node='n'><x xmlns='jabber:x:data' type='form'><field type='text-single'/></x></configure>")), pep.ReadConfig{}},
		{iq("result", pubsub("<options node='n' jid='j'/>")), pep.ReadOptions{JID: "j"}},
		{iq("result", pubsub("<subscriptions><subscription node='n' jid='j' subscription='none'/></subscriptions>")), pep.ListSubscriptions{}},
		{iq("result", pubsub("<affiliations><affiliation node='n' affiliation='king'/></affiliations>")), pep.ListAffiliations{}},
		{iq("result", owner("<affiliations node='n'><affiliation jid='j' affiliation='king'/></affiliations>")), pep.ReadAffiliations{}},
		{iq("result", "<command xmlns='http://jabber.org/protocol/commands' status='busy'/>"), Command{}},
	} {
		if got, err := DecodeReply([]byte(test.raw), test.call); !errors.Is(err, ErrBadReply) {
			t.Errorf("%q for a %T: %v, %v", test.raw, test.call, got, err)
		}
	}
}
