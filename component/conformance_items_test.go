package component_test

import "strings"

// conformanceOfItems are the rules about records: XEP-0060 §6.5, §7, §8.5 and
// §12, XEP-0059.
func conformanceOfItems() []chapter {
	three := publishes(oneItem("a") + oneItem("b") + oneItem("c"))
	published := func(id string) string { return pubsub("<publish node='notes'><item id='" + id + "'/></publish>") }
	several := func(ids ...string) []string {
		var all []string
		for i, id := range ids {
			what := event("<items node='notes'>" + readItem(id, "alice") + "</items>")
			if i == len(ids)-1 {
				what = toldItem(id)
			}
			all = append(all, what)
		}
		return all
	}
	return []chapter{
		{"XEP-0060 §7.1 publish", []exchange{
			{rule: "§7.1.3.7 no item", ask: publishes(""), want: "modify/bad-request+item-required"},
			{rule: "§7.1.3 no node", ask: pubsub("<publish>" + oneItem("a") + "</publish>"), want: "modify/bad-request+nodeid-required"},
			{rule: "§7.1.3.6 no payload", ask: publishes("<item id='a'/>"), want: "modify/bad-request+payload-required"},
			{rule: "§7.1.3.6 two payloads", ask: publishes("<item id='a'><n xmlns='urn:example'/><n xmlns='urn:example'/></item>"), want: "modify/bad-request+invalid-payload"},
			{rule: "§7.1.3.6 text as payload", ask: publishes("<item id='a'>text</item>"), want: "modify/bad-request+invalid-payload"},
			{rule: "§7.1.3.5 payload too big (C21)", ask: publishes("<item id='a'><n xmlns='urn:example'>" + strings.Repeat("x", 2000) + "</n></item>"), want: "modify/not-acceptable+payload-too-big"},
			{rule: "§7.1.3 an error leaves no node behind", ask: "get " + items(""), want: "cancel/item-not-found"},
			{rule: "§7.1.4 the node is made", ask: publishes(oneItem("a")), want: published("a"), heard: several("a")},
			{rule: "§7.1.2.1 an id is made", ask: publishes("<item><n xmlns='urn:example'/></item>"), want: published("$made"), heard: several("$made")},
			{rule: "§7.1.2.3 the publisher is set by the service", ask: publishes("<item id='b' publisher='mallory@localhost'><n xmlns='urn:example'/></item>"), want: published("b"), heard: several("b")},
			{rule: "§7.1.3 the same id is overwritten", ask: publishes(oneItem("a")), want: published("a"), heard: several("a")},
			{rule: "§12.1 what is overwritten is the latest", ask: "get " + items(""), want: items(readItem("$made", "alice") + readItem("b", "alice") + readItem("a", "alice"))},
			{rule: "§12.11 several, one of them bad", ask: publishes(oneItem("c") + "<item id='d'/>"), want: "modify/bad-request+payload-required"},
			{rule: "§12.11 several, which can't fit", ask: publishes(oneItem("1") + oneItem("2") + oneItem("3") + oneItem("4") + oneItem("5")), want: "cancel/not-allowed+max-items-exceeded"},
			{rule: "§7.1.3.4 several, for which there is no room", ask: publishes(oneItem("c") + oneItem("d")), want: "cancel/conflict+node-full"},
			{rule: "§12.11 none of them is stored", ask: "get " + items("<item id='c'/>"), want: pubsub("<items node='notes'/>")},
			{rule: "§12.11 several at once", ask: publishes(oneItem("b") + oneItem("c")), want: pubsub("<publish node='notes'><item id='b'/><item id='c'/></publish>"), heard: several("b", "c")},
			{rule: "§7.1.3.4 the node is full", ask: publishes(oneItem("d")), want: "cancel/conflict+node-full"},
			{rule: "§7.1.3 overwriting in a full node", ask: publishes(oneItem("a")), want: published("a"), heard: several("a")},
		}},
		{"XEP-0060 §7.1.5 publish-options", []exchange{
			{rule: "the node is made with them", ask: publishesWith("a", "max_items", "3", "access_model", "whitelist"), want: published("a"), heard: several("a")},
			{rule: "they fit", ask: publishesWith("b", "max_items", "3"), want: published("b"), heard: several("b")},
			{rule: "they do not fit (C02)", ask: publishesWith("c", "max_items", "2"), want: "cancel/conflict+precondition-not-met"},
			{rule: "a field that nobody knows", ask: publishesWith("c", "no_such_field", "2"), want: "cancel/conflict+precondition-not-met"},
			{rule: "a form of another type", ask: pubsub("<publish node='notes'>" + oneItem("c") + "</publish><publish-options>" + submits("node_config", "max_items", "3") + "</publish-options>"), want: "modify/bad-request"},
			{rule: "an error stores nothing", ask: "get " + items(""), want: items(readItem("a", "alice") + readItem("b", "alice"))},
			{rule: "the node is configured (C02)", ask: configures("max_items", "2"), want: "", heard: []string{told("<configuration node='notes'>*</configuration>")}},
			{rule: "then they fit (C02)", ask: publishesWith("b", "max_items", "2"), want: published("b"), heard: several("b")},
			{rule: "the node is deleted (C01)", ask: owners("<delete node='notes'/>"), want: "", heard: []string{told("<delete node='notes'/>")}},
			{rule: "options of the past bind nobody (C01)", ask: publishesWith("a", "max_items", "4"), want: published("a"), heard: several("a")},
			{rule: "the number is beyond the service's (C04)", ask: pubsub("<publish node='other'>" + oneItem("a") + "</publish><publish-options>" + submits("publish-options", "max_items", "5") + "</publish-options>"), want: "cancel/conflict+precondition-not-met"},
			{rule: "an error makes no node (C01)", ask: "get " + disco("items", ""), want: "<query xmlns='http://jabber.org/protocol/disco#items'><item jid='vault.localhost' node='notes'/></query>"},
		}},
		{"XEP-0223 and XEP-0490 storage", []exchange{
			{rule: "XEP-0223 §5 private data", ask: publishesWith("a", "persist_items", "true", "access_model", "whitelist"), want: published("a"), heard: several("a")},
			{rule: "XEP-0490 §3 what is read", ask: publishesWith("b", "persist_items", "true", "max_items", "max", "send_last_published_item", "never", "access_model", "whitelist"), want: published("b"), heard: several("b")},
			{rule: "XEP-0223 §5 never where others read", ask: publishesWith("c", "access_model", "open"), want: "cancel/conflict+precondition-not-met"},
			{rule: "XEP-0223 §5 never where it may vanish", ask: publishesWith("c", "persist_items", "false"), want: "cancel/conflict+precondition-not-met"},
			{rule: "XEP-0222 §3 persistent data", ask: publishesWith("a", "persist_items", "1", "send_last_published_item", "never"), want: published("a"), heard: several("a")},
		}},
		{"XEP-0060 §6.5 items", []exchange{
			{rule: "§6.5.9.11 no such node", ask: "get " + items(""), want: "cancel/item-not-found"},
			{rule: "three of them", ask: three, want: pubsub("<publish node='notes'><item id='a'/><item id='b'/><item id='c'/></publish>"), heard: several("a", "b", "c")},
			{rule: "§6.5.2 all", ask: "get " + items(""), want: items(readItem("a", "alice") + readItem("b", "alice") + readItem("c", "alice"))},
			{rule: "§6.5.7 the latest", ask: "get " + pubsub("<items node='notes' max_items='2'/>"), want: items(readItem("b", "alice") + readItem("c", "alice"))},
			{rule: "§6.5.8 by id", ask: "get " + items("<item id='b'/>"), want: items(readItem("b", "alice"))},
			{rule: "§6.5.6 by several ids", ask: "get " + items("<item id='a'/><item id='c'/>"), want: items(readItem("a", "alice") + readItem("c", "alice"))},
			{rule: "§6.5.9.12 by ids that are not there", ask: "get " + items("<item id='x'/>"), want: pubsub("<items node='notes'/>")},
			{rule: "§6.5.9 no node", ask: "get " + pubsub("<items/>"), want: "modify/bad-request+nodeid-required"},
			{rule: "XEP-0059 §2.1 the first page", ask: paged("<max>2</max>"), want: page(readItem("a", "alice")+readItem("b", "alice"), "<first index='0'>$u1</first><last>$u2</last><count>3</count>")},
			{rule: "XEP-0059 §2.2 the page after (C19)", ask: paged("<max>2</max><after>$u2</after>"), want: page(readItem("c", "alice"), "<first index='2'>$u3</first><last>$u3</last><count>3</count>")},
			{rule: "XEP-0059 §2.2 after the end", ask: paged("<max>2</max><after>$u3</after>"), want: pubsub("<items node='notes'/><set xmlns='http://jabber.org/protocol/rsm'><count>3</count></set>")},
			{rule: "XEP-0059 §2.3 the page before", ask: paged("<max>2</max><before>$u3</before>"), want: page(readItem("a", "alice")+readItem("b", "alice"), "<first index='0'>$u1</first><last>$u2</last><count>3</count>")},
			{rule: "XEP-0059 §2.5 the last page (C17)", ask: paged("<max>2</max><before/>"), want: page(readItem("b", "alice")+readItem("c", "alice"), "<first index='1'>$u2</first><last>$u3</last><count>3</count>")},
			{rule: "XEP-0059 §2.6 a page by its index", ask: paged("<max>1</max><index>1</index>"), want: page(readItem("b", "alice"), "<first index='1'>$u2</first><last>$u2</last><count>3</count>")},
			{rule: "XEP-0059 §2.7 the count", ask: paged("<max>0</max>"), want: pubsub("<items node='notes'/><set xmlns='http://jabber.org/protocol/rsm'><count>3</count></set>")},
			{rule: "XEP-0059 §2.4 no such page", ask: paged("<max>2</max><after>nothing</after>"), want: "cancel/item-not-found"},
		}},
		{"XEP-0060 §7.2 retract", []exchange{
			{rule: "§7.2.3.2 no such node", ask: pubsub("<retract node='notes'><item id='a'/></retract>"), want: "cancel/item-not-found"},
			{rule: "three of them", ask: three, want: pubsub("<publish node='notes'><item id='a'/><item id='b'/><item id='c'/></publish>"), heard: several("a", "b", "c")},
			{rule: "§7.2.3.3 no node", ask: pubsub("<retract><item id='a'/></retract>"), want: "modify/bad-request+nodeid-required"},
			{rule: "§7.2.3.4 no item", ask: pubsub("<retract node='notes'/>"), want: "modify/bad-request+item-required"},
			{rule: "§7.2.3.4 an item without id", ask: pubsub("<retract node='notes'><item/></retract>"), want: "modify/bad-request+item-required"},
			{rule: "§7.2.3.2 no such item", ask: pubsub("<retract node='notes'><item id='x'/></retract>"), want: "cancel/item-not-found"},
			{rule: "§12.11 one of several is not there", ask: pubsub("<retract node='notes'><item id='a'/><item id='x'/></retract>"), want: "cancel/item-not-found"},
			{rule: "§7.2.2.1 told, as it was asked for (C07)", ask: pubsub("<retract node='notes' notify='1'><item id='a'/></retract>"), want: "", heard: []string{told("<items node='notes'><retract id='a'/></items>")}},
			{rule: "§7.2.2.1 told, as it is configured", ask: pubsub("<retract node='notes'><item id='b'/></retract>"), want: "", heard: []string{told("<items node='notes'><retract id='b'/></items>")}},
			{rule: "§7.2.2 what was retracted is gone", ask: "get " + items(""), want: items(readItem("c", "alice"))},
			{rule: "§8.5 purge", ask: owners("<purge node='notes'/>"), want: "", heard: []string{told("<purge node='notes'/>")}},
			{rule: "§8.5.2 the node is there, and empty", ask: "get " + items(""), want: pubsub("<items node='notes'/>")},
			{rule: "§8.5.3.3 no such node", ask: owners("<purge node='absent'/>"), want: "cancel/item-not-found"},
			{rule: "§8.5.3 no node", ask: owners("<purge/>"), want: "modify/bad-request+nodeid-required"},
		}},
	}
}
