package component_test

// conformanceOfPeople are the rules about who may do what: XEP-0060 §4, §5.6,
// §5.7, §6 and §8.9.
func conformanceOfPeople() []chapter {
	mine := func(about string) string { return "get " + pubsub("<"+about+"/>") }
	subscribed := func(jid string) string {
		return pubsub("<subscription node='notes' jid='" + jid + "' subscription='subscribed'/>")
	}
	subscribe := func(jid string) string { return pubsub("<subscribe node='notes' jid='" + jid + "'/>") }
	made := exchange{rule: "a record", ask: publishes(oneItem("a")), want: pubsub("<publish node='notes'><item id='a'/></publish>"), heard: []string{toldItem("a")}}
	with := func(x exchange, by, rule string) exchange {
		x.by, x.at, x.rule = by, "alice", rule
		return x
	}
	configuring := exchange{ask: configures("title", "x"), want: "auth/forbidden"}
	affiliating := exchange{ask: affiliates("mallory", "owner"), want: "auth/forbidden"}
	deleting := exchange{ask: owners("<delete node='notes'/>"), want: "auth/forbidden"}
	purging := exchange{ask: owners("<purge node='notes'/>"), want: "auth/forbidden"}
	reading := exchange{ask: "get " + items(""), want: items(readItem("a", "alice"))}
	closed := exchange{ask: "get " + items(""), want: "cancel/not-allowed+closed-node"}
	publishing := exchange{ask: publishes(oneItem("x")), want: "auth/forbidden"}
	return []chapter{
		{"XEP-0060 §6 subscribe", []exchange{
			{rule: "§6.1.3.12 no such node", ask: subscribe("alice@localhost"), want: "cancel/item-not-found"},
			made,
			{rule: "§5.6 no subscriptions", ask: mine("subscriptions"), want: pubsub("<subscriptions/>")},
			{rule: "§6.1.3.1 for somebody else", ask: subscribe("bob@localhost"), want: "modify/bad-request+invalid-jid"},
			{rule: "§6.1.3 for nobody", ask: pubsub("<subscribe node='notes'/>"), want: "modify/bad-request+invalid-jid"},
			{rule: "§6.1.1 the account", ask: subscribe("alice@localhost"), want: subscribed("alice@localhost")},
			{rule: "§6.1.6 twice is once", ask: subscribe("alice@localhost"), want: subscribed("alice@localhost")},
			{rule: "§5.6 subscriptions", ask: mine("subscriptions"), want: pubsub("<subscriptions><subscription node='notes' jid='alice@localhost' subscription='subscribed'/></subscriptions>")},
			{rule: "§5.6 of a node", ask: "get " + pubsub("<subscriptions node='notes'/>"), want: pubsub("<subscriptions node='notes'><subscription node='notes' jid='alice@localhost' subscription='subscribed'/></subscriptions>")},
			{rule: "§6.3.2 its options", ask: "get " + pubsub("<options node='notes' jid='alice@localhost'/>"), want: pubsub("<options node='notes' jid='alice@localhost'>*</options>")},
			{rule: "§6.3.4.2 options of no subscription", ask: "get " + pubsub("<options node='notes' jid='alice@localhost/laptop'/>"), want: "cancel/unexpected-request+not-subscribed"},
			{rule: "§6.3.4.3 options of nobody", ask: "get " + pubsub("<options node='notes'/>"), want: "modify/bad-request+jid-required"},
			{rule: "§6.3.6 options that can't be", ask: pubsub("<options node='notes' jid='alice@localhost'>" + submits("subscribe_options", "deliver", "0") + "</options>"), want: "modify/bad-request+invalid-options"},
			{rule: "§6.4 defaults", ask: "get " + pubsub("<default/>"), want: pubsub("<default>*</default>")},
			{rule: "§6.2.3.3 unsubscribe somebody else", ask: pubsub("<unsubscribe node='notes' jid='bob@localhost'/>"), want: "auth/forbidden"},
			{rule: "§6.2.1 unsubscribe", ask: pubsub("<unsubscribe node='notes' jid='alice@localhost'/>"), want: ""},
			{rule: "§6.2.3.2 not subscribed", ask: pubsub("<unsubscribe node='notes' jid='alice@localhost'/>"), want: "cancel/unexpected-request+not-subscribed"},
			{rule: "§6.2.3.4 no such node", ask: pubsub("<unsubscribe node='absent' jid='alice@localhost'/>"), want: "cancel/item-not-found"},
		}},
		{"XEP-0060 §8.9 affiliations", []exchange{
			made,
			{rule: "§5.7 the owner's own", ask: mine("affiliations"), want: pubsub("<affiliations><affiliation node='notes' affiliation='owner'/></affiliations>")},
			{rule: "§5.7 none", by: guestNone, at: "alice", ask: mine("affiliations"), want: pubsub("<affiliations/>")},
			{rule: "§8.9.2 given", ask: affiliates("paula", "publisher", "bob", "member", "olaf", "outcast"), want: ""},
			{rule: "§8.9.1 all of them", ask: "get " + owners("<affiliations node='notes'/>"), want: owners("<affiliations node='notes'><affiliation jid='alice@localhost' affiliation='owner'/><affiliation jid='bob@localhost' affiliation='member'/><affiliation jid='olaf@localhost' affiliation='outcast'/><affiliation jid='paula@localhost' affiliation='publisher'/></affiliations>")},
			{rule: "§8.9.2.4 the last owner stays", ask: affiliates("alice", "none"), want: "modify/not-acceptable"},
			{rule: "§8.9.2.4 a second owner", ask: affiliates("mallory", "owner"), want: "modify/not-acceptable"},
			{rule: "§8.9.2 an affiliation that nobody knows", ask: affiliates("mallory", "king"), want: "modify/not-acceptable"},
			{rule: "§8.9.1 no such node", ask: "get " + owners("<affiliations node='absent'/>"), want: "cancel/item-not-found"},
			{rule: "§5.7 a guest's own", by: guestMember, at: "alice", ask: mine("affiliations"), want: pubsub("<affiliations><affiliation node='notes' affiliation='member'/></affiliations>")},

			with(reading, guestMember, "§4.1 a member reads"),
			with(publishing, guestMember, "§7.1.3.1 a member does not publish"),
			with(exchange{ask: subscribe("bob@localhost"), want: subscribed("bob@localhost")}, guestMember, "§4.1 a member subscribes"),
			with(configuring, guestMember, "§8.2.3.1 a member does not configure"),
			with(affiliating, guestMember, "§8.9.2.3 a member gives no affiliation"),
			with(deleting, guestMember, "§8.4.3.1 a member does not delete"),
			with(purging, guestMember, "§8.5.3.1 a member does not purge"),

			with(reading, guestPublisher, "§4.1 a publisher reads"),
			with(exchange{ask: publishes(oneItem("p")), want: pubsub("<publish node='notes'><item id='p'/></publish>"), heard: []string{told("<items node='notes'>" + readItem("p", "paula") + "</items>")}}, guestPublisher, "§4.1 a publisher publishes"),
			with(exchange{ask: pubsub("<retract node='notes'><item id='p'/></retract>"), want: "", heard: []string{told("<items node='notes'><retract id='p'/></items>")}}, guestPublisher, "§4.1 a publisher retracts"),
			with(configuring, guestPublisher, "§8.2.3.1 a publisher does not configure"),
			with(affiliating, guestPublisher, "§8.9.2.3 a publisher gives no affiliation"),
			with(deleting, guestPublisher, "§8.4.3.1 a publisher does not delete"),
			with(purging, guestPublisher, "§8.5.3.1 a publisher does not purge"),

			{rule: "§8.9.2 taken away", ask: affiliates("bob", "none"), want: ""},
			with(closed, guestMember, "§6.5.9.6 who was a member reads no more"),
		}},
		{"XEP-0060 §6.5.9 whitelist", []exchange{
			made,
			{rule: "an outcast", ask: affiliates("olaf", "outcast"), want: ""},
			with(closed, guestNone, "§6.5.9.6 nobody else reads"),
			with(exchange{ask: subscribe("mallory@localhost"), want: "cancel/not-allowed+closed-node"}, guestNone, "§6.1.3.4 nor subscribes"),
			with(exchange{ask: "get " + disco("info", "notes"), want: "cancel/not-allowed+closed-node"}, guestNone, "§5.3 nor finds it"),
			with(exchange{ask: "get " + disco("items", ""), want: "<query xmlns='http://jabber.org/protocol/disco#items'/>"}, guestNone, "XEP-0163 §6.2 nor sees it listed"),
			with(publishing, guestNone, "§7.1.3.1 nor publishes"),
			with(configuring, guestNone, "§8.2.3.1 nor configures"),
			with(deleting, guestNone, "§8.4.3.1 nor deletes"),
			with(exchange{ask: "get " + pubsub("<items node='absent'/>"), want: "cancel/not-allowed+closed-node"}, guestNone, "§6.5.9.6 what is not there is closed too"),
			with(closed, guestOutcast, "§6.5.9.7 an outcast does not read"),
			with(publishing, guestOutcast, "§7.1.3.1 nor publishes"),
			with(exchange{ask: publishes(oneItem("d")), want: pubsub("<publish node='notes'><item id='d'/></publish>"), heard: []string{toldItem("d")}}, guestOwner, "§4.1 the owner's other device may at that address"),
		}},
	}
}
