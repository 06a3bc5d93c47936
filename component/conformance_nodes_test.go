package component_test

// conformanceOfNodes are the rules about nodes: XEP-0060 §5 and §8, XEP-0030,
// XEP-0050.
func conformanceOfNodes() []chapter {
	const form = "<configure node='notes'>*</configure>"
	command := func(node, attrs, inner string) string {
		return "<command xmlns='http://jabber.org/protocol/commands' node='urn:pepvault:command:" + node + "' " + attrs + ">" + inner + "</command>"
	}
	answer := func(field, value string) string {
		return "<x xmlns='jabber:x:data' type='submit'><field var='" + field + "'><value>" + value + "</value></field></x>"
	}
	leaf := "<query xmlns='http://jabber.org/protocol/disco#info' node='notes'>*</query>"
	return []chapter{
		{"XEP-0060 §5 discovery", []exchange{
			{rule: "§5.2 no nodes", ask: "get " + disco("items", ""), want: "<query xmlns='http://jabber.org/protocol/disco#items'/>"},
			{rule: "§5.3 no such node (C46)", ask: "get " + disco("info", "notes"), want: "cancel/item-not-found"},
			{rule: "§5.5 items of no such node (C46)", ask: "get " + disco("items", "notes"), want: "cancel/item-not-found"},
			{rule: "a node", ask: pubsub("<create node='notes'/>"), want: pubsub("<create node='notes'/>"), heard: []string{toldCreation}},
			{rule: "§5.2 nodes", ask: "get " + disco("items", ""), want: "<query xmlns='http://jabber.org/protocol/disco#items'><item jid='vault.localhost' node='notes'/></query>"},
			{rule: "§5.5 no items", ask: "get " + disco("items", "notes"), want: "<query xmlns='http://jabber.org/protocol/disco#items' node='notes'/>"},
			{rule: "§5.3 the node", ask: "get " + disco("info", "notes"), want: leaf},
			{rule: "XEP-0199 ping", ask: "get " + ping, want: ""},
			{rule: "XEP-0092 version", ask: "get <query xmlns='jabber:iq:version'/>", want: "<query xmlns='jabber:iq:version'><name>pepvault</name><version>1.2.3</version></query>"},
			{rule: "RFC 6120 §8.4 what nobody knows", ask: "get <query xmlns='urn:example:unknown'/>", want: "cancel/service-unavailable"},
			{rule: "§10 what is not supported", ask: "get " + owners("<subscriptions node='notes'/>"), want: "cancel/feature-not-implemented+unsupported"},
		}},
		{"XEP-0060 §8.1 create", []exchange{
			{rule: "§8.1.1 a node", ask: pubsub("<create node='notes'/>"), want: pubsub("<create node='notes'/>"), heard: []string{toldCreation}},
			{rule: "§8.1.2 it is there", ask: pubsub("<create node='notes'/>"), want: "cancel/conflict"},
			{rule: "§8.1.1 an instant node", ask: pubsub("<create/>"), want: pubsub("<create node='$instant'/>")},
			{rule: "§8.1.1 it is made", ask: "get " + pubsub("<items node='$instant'/>"), want: pubsub("<items node='$instant'/>")},
			{rule: "§8.1.3 with a configuration", ask: pubsub("<create node='other'/><configure>" + submits("node_config", "max_items", "2") + "</configure>"), want: pubsub("<create node='other'/>")},
			{rule: "§8.1.2 with an access model that is not ours", ask: pubsub("<create node='open'/><configure>" + submits("node_config", "access_model", "open") + "</configure>"), want: "modify/not-acceptable+unsupported-access-model"},
			{rule: "§8.1.2 with a configuration that can't be", ask: pubsub("<create node='open'/><configure>" + submits("node_config", "max_items", "5") + "</configure>"), want: "modify/not-acceptable"},
			{rule: "§8.1.3 the configuration names no node", ask: pubsub("<create node='open'/><configure node='open'>" + submits("node_config") + "</configure>"), want: "modify/bad-request"},
			{rule: "§8.1.3 the configuration comes after", ask: pubsub("<configure>" + submits("node_config") + "</configure><create node='open'/>"), want: "modify/bad-request"},
			{rule: "§8.1.1 as many as an account may have", ask: pubsub("<create node='fourth'/>"), want: pubsub("<create node='fourth'/>")},
			{rule: "§8.1.2 one more", ask: pubsub("<create node='fifth'/>"), want: "cancel/conflict+max-nodes-exceeded"},
			{rule: "§7.1.4 a publish to one that is there", ask: publishes(oneItem("a")), want: pubsub("<publish node='notes'><item id='a'/></publish>"), heard: []string{toldItem("a")}},
			{rule: "§7.1.4 a publish to one more", ask: pubsub("<publish node='fifth'>" + oneItem("a") + "</publish>"), want: "cancel/conflict+max-nodes-exceeded"},
			{rule: "§8.1.2 an error makes no node", ask: "get " + pubsub("<items node='open'/>"), want: "cancel/item-not-found"},
		}},
		{"XEP-0060 §8.2 configure", []exchange{
			{rule: "§8.2.3.4 no such node", ask: "get " + owners("<configure node='notes'/>"), want: "cancel/item-not-found"},
			{rule: "two records", ask: publishes(oneItem("a") + oneItem("b")), want: pubsub("<publish node='notes'><item id='a'/><item id='b'/></publish>"), heard: []string{event("*"), told("*")}},
			{rule: "§8.2.1 the form", ask: "get " + owners("<configure node='notes'/>"), want: owners(form)},
			{rule: "§8.2.3.3 no node", ask: "get " + owners("<configure/>"), want: "modify/bad-request+nodeid-required"},
			{rule: "§8.2.4 cancel", ask: owners("<configure node='notes'><x xmlns='jabber:x:data' type='cancel'/></configure>"), want: ""},
			{rule: "§8.2.5.1 submit (C49)", ask: configures("max_items", "3"), want: "", heard: []string{told("<configuration node='notes'>*</configuration>")}},
			{rule: "§8.2.5.1 what changes nothing tells nothing", ask: configures("max_items", "3"), want: ""},
			{rule: "§8.2.5.2 fewer than there are", ask: configures("max_items", "1"), want: "modify/not-acceptable"},
			{rule: "§8.2.5.2 more than the service has (C04)", ask: configures("max_items", "5"), want: "modify/not-acceptable"},
			{rule: "§8.2.5.2 what is not ours", ask: configures("access_model", "presence"), want: "modify/not-acceptable+unsupported-access-model"},
			{rule: "§16.4.2 a field that nobody knows", ask: configures("no_such_field", "1"), want: "modify/not-acceptable"},
			{rule: "§7.1.3.6 the type of payloads", ask: configures("type", "urn:example:other"), want: "", heard: []string{told("<configuration node='notes'>*</configuration>")}},
			{rule: "§7.1.3.6 a payload of another type", ask: publishes(oneItem("c")), want: "modify/bad-request+invalid-payload"},
			{rule: "§8.3 defaults", ask: "get " + owners("<default/>"), want: owners("<default>*</default>")},
			{rule: "§7.1.3.4 the oldest may have to go", ask: configures("type", "urn:example", "max_items", "2", "publish_node_full", "retract-oldest"), want: "", heard: []string{told("<configuration node='notes'>*</configuration>")}},
			{rule: "§7.1.3.4 then it is retracted", ask: publishes(oneItem("c")), want: pubsub("<publish node='notes'><item id='c'/></publish>"), heard: []string{
				event("<items node='notes'><retract id='a'/></items>"), toldItem("c"),
			}},
		}},
		{"XEP-0060 §8.4 delete", []exchange{
			{rule: "§8.4.3.2 no such node", ask: owners("<delete node='notes'/>"), want: "cancel/item-not-found"},
			{rule: "§8.4 no node", ask: owners("<delete/>"), want: "modify/bad-request+nodeid-required"},
			{rule: "a record", ask: publishes(oneItem("a")), want: pubsub("<publish node='notes'><item id='a'/></publish>"), heard: []string{toldItem("a")}},
			{rule: "§8.4.1 told to those who hear of it", ask: owners("<delete node='notes'/>"), want: "", heard: []string{told("<delete node='notes'/>")}},
			{rule: "§8.4.1 its items are gone", ask: "get " + items(""), want: "cancel/item-not-found"},
			{rule: "§8.4.1 made again it is empty", ask: pubsub("<create node='notes'/>"), want: pubsub("<create node='notes'/>"), heard: []string{toldCreation}},
			{rule: "§8.4.1 empty", ask: "get " + items(""), want: pubsub("<items node='notes'/>")},
		}},
		{"XEP-0050 commands", []exchange{
			{rule: "§2.2 listed to operators", by: "bob/pc", ask: "get " + disco("items", "http://jabber.org/protocol/commands"), want: "<query xmlns='http://jabber.org/protocol/disco#items' node='http://jabber.org/protocol/commands'>*</query>"},
			{rule: "§2.2 to nobody else", ask: "get " + disco("items", "http://jabber.org/protocol/commands"), want: "<query xmlns='http://jabber.org/protocol/disco#items' node='http://jabber.org/protocol/commands'/>"},
			{rule: "§4.4 forbidden to everybody else", ask: command("usage", "action='execute'", ""), want: "auth/forbidden"},
			{rule: "§4.4 no such command", by: "bob/pc", ask: command("absent", "", ""), want: "cancel/item-not-found"},
			{rule: "§4.4 no such action", by: "bob/pc", ask: command("usage", "action='jump'", ""), want: "modify/bad-request+malformed-action"},
			{rule: "§3.4 a stage", by: "bob/pc", ask: command("usage", "action='execute'", ""), want: command("usage", "sessionid='$session' status='executing'", "<actions execute='complete'><complete/></actions><x xmlns='jabber:x:data' type='form'>*</x>")},
			{rule: "§4.4 no action of that stage", by: "bob/pc", ask: command("usage", "sessionid='$session' action='prev'", ""), want: "modify/bad-request+bad-action"},
			{rule: "§4.4 a form that says nothing", by: "bob/pc", ask: command("usage", "sessionid='$session' action='complete'", answer("jid", "no account")), want: "modify/bad-request+bad-payload"},
			{rule: "§4.4 no such session", by: "bob/pc", ask: command("usage", "sessionid='other' action='complete'", answer("jid", "alice@localhost")), want: "modify/bad-request+bad-sessionid"},
			{rule: "§3.4 the end", by: "bob/pc", ask: command("usage", "sessionid='$session' action='complete'", answer("jid", "alice@localhost")), want: command("usage", "sessionid='$session' status='completed'", "<x xmlns='jabber:x:data' type='result'>*</x>")},
			{rule: "§3.4 another one", by: "bob/pc", ask: command("erase", "", ""), want: command("erase", "sessionid='$next' status='executing'", "<actions execute='next'><next/></actions><x xmlns='jabber:x:data' type='form'>*</x>")},
			{rule: "§3.4 canceled", by: "bob/pc", ask: command("erase", "sessionid='$next' action='cancel'", ""), want: command("erase", "sessionid='$next' status='canceled'", "")},
			{rule: "§4.4 it has ended", by: "bob/pc", ask: command("erase", "sessionid='$next' action='next'", answer("jid", "alice@localhost")), want: "modify/bad-request+bad-sessionid"},
		}},
	}
}
