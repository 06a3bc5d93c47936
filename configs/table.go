package configs

import (
	"log/slog"
	"time"
)

// tables returns the names of the tables, in the order of the documented file.
func tables() []struct{ name, text string } {
	return []struct{ name, text string }{
		{"component", "The service towards its XMPP server (XEP-0114)."},
		{"access", "Who is served."},
		{"limits", "What an account may store and ask for. Devices can read most of these by service discovery."},
		{"store", "Where the data is."},
		{"stream", "How much is sent, and how far ahead of what has arrived."},
		{"http", "A small HTTP server: /healthz, /readyz and /metrics."},
		{"log", "The log, on standard error."},
	}
}

// keys returns the table that everything else here is made from.
func keys() []key {
	var all []key
	for _, group := range [][]key{componentKeys(), accessKeys(), limitKeys(), storeKeys(), streamKeys(), otherKeys()} {
		all = append(all, group...)
	}
	return all
}

func componentKeys() []key {
	address := text("component.jid", "", `a domain, such as "vault.example.org"`, domain,
		func(c *Config) *string { return &c.Component.JID },
		"The service's own address. The server must know it as an external component.")
	address.required, address.shown, address.example = true, true, `"vault.example.org"`

	file := text("component.secret_file", "", "the path of a file that can be read", optionalPath,
		func(c *Config) *string { return &c.Component.secretFile },
		"A file that holds the secret shared with the server; one line break at its end is left out. A relative path counts from the folder of this file. The environment variable "+SecretEnv+" goes before it.")
	file.shown, file.example = true, `"secret"`

	secret := secretKey("component.secret", func(c *Config) *Secret { return &c.Component.Secret },
		"The secret itself, used where neither "+SecretEnv+" nor secret_file is given. Keep this file from other users' eyes then.")
	secret.example = `"change me"`

	contact := text("component.contact", "", `"" or a URI that begins with mailto:, xmpp:, https: or http:`, contactURI,
		func(c *Config) *string { return &c.Component.Contact },
		"Where users reach you (XEP-0157).")
	contact.example, contact.derived = `"mailto:admin@example.org"`, "none"

	return []key{
		address,
		text("component.server", "127.0.0.1:5347", "HOST:PORT", hostPort,
			func(c *Config) *string { return &c.Component.Server },
			"The server's component port."),
		file,
		secret,
		choice("component.tls", TLSOff, plainOptions(TLSOff, TLSDirect),
			func(c *Config) *string { return &c.Component.TLS },
			"\"direct\" speaks TLS from the first byte and verifies the certificate against the system's roots, for the host that server names. \"off\" is for a server on the same machine."),
		text("component.name", "pepvault", "1 to 256 bytes without control characters", displayName,
			func(c *Config) *string { return &c.Component.Name },
			"The name that service discovery shows."),
		contact,
	}
}

func accessKeys() []key {
	domains := list("access.domains", "", `a list of at least one domain, such as ["example.org"]`, domain,
		func(c *Config) *[]string { return &c.Access.Domains },
		"Accounts of these domains are served, all others are refused.")
	domains.example, domains.derived = `["example.org"]`, "the parent domain of component.jid"
	return []key{
		domains,
		list("access.admins", "[]", `a list of bare JIDs, such as ["admin@example.org"]`, bareJID,
			func(c *Config) *[]string { return &c.Access.Admins },
			"Accounts that may use the operator's commands through their client (XEP-0050): of access.domains, since others are not heard."),
	}
}

func limitKeys() []key {
	return []key{
		integer("limits.max_records", "records", 256, 1, 32768, func(c *Config) *int { return &c.Limits.MaxRecords },
			"Records of one vault. A full vault refuses a new record and drops none."),
		integer("limits.max_record_bytes", "bytes", 65536, 1024, 262144, func(c *Config) *int { return &c.Limits.MaxRecordBytes },
			"Size of one record: the ciphertext of a native one, the serialised element of a foreign one. Servers cut a client's stanza at 256 KiB unless told otherwise."),
		integer("limits.max_vaults", "vaults", 256, 1, 65536, func(c *Config) *int { return &c.Limits.MaxVaults },
			"Vaults of one account."),
		integer("limits.max_account_bytes", "bytes", 67108864, 65536, 1<<40, func(c *Config) *int64 { return &c.Limits.MaxAccountBytes },
			"Sum of all records of one account."),
		integer("limits.max_batch_records", "records", 1024, 1, 65536, func(c *Config) *int { return &c.Limits.MaxBatchRecords },
			"Changes in one batch. At least max_records, so that a key rotation can replace every record."),
		integer("limits.max_staged_bytes", "bytes", 33554432, 65536, 1<<40, func(c *Config) *int64 { return &c.Limits.MaxStagedBytes },
			"Sum of what one account has staged in batches."),
		duration("limits.batch_expiry", "24h", time.Minute, 720*time.Hour, func(c *Config) *time.Duration { return &c.Limits.BatchExpiry },
			"A batch that is not committed is dropped after this time."),
		integer("limits.rate_per_second", "requests", 200, 1, 100000, func(c *Config) *int { return &c.Limits.RatePerSecond },
			"Requests a second that one account may keep up, all its devices together. What is beyond is refused for a while."),
		integer("limits.rate_burst", "requests", 1000, 1, 1000000, func(c *Config) *int { return &c.Limits.RateBurst },
			"Requests that one account may send at once above that rate."),
		integer("limits.max_pending_requests", "requests", 512, 1, 65536, func(c *Config) *int { return &c.Limits.MaxPendingRequests },
			"Requests of one account that may wait to be answered."),
		integer("limits.max_resources", "resources", 32, 1, 1024, func(c *Config) *int { return &c.Limits.MaxResources },
			"Devices of one account that are known at a time."),
		integer("limits.max_subscriptions", "subscriptions", 16, 1, 4096, func(c *Config) *int { return &c.Limits.MaxSubscriptions },
			"Subscriptions of one vault."),
		integer("limits.max_downloads", "downloads", 4, 1, 64, func(c *Config) *int { return &c.Limits.MaxDownloads },
			"Pushed downloads that one account may have under way."),
		integer("limits.max_affiliations", "affiliations", 32, 1, 4096, func(c *Config) *int { return &c.Limits.MaxAffiliations },
			"Other accounts that one vault may be shared with."),
		integer("limits.max_batches", "batches", 2, 1, 64, func(c *Config) *int { return &c.Limits.MaxBatches },
			"Open batches of one account."),
		integer("limits.tombstones_factor", "times max_records", 4, 1, 64, func(c *Config) *int { return &c.Limits.TombstonesFactor },
			"Traces of deleted records that one vault keeps. A device that missed one which is forgotten has to load the vault anew."),
		integer("limits.resource_days", "days", 30, 1, 3650, func(c *Config) *int { return &c.Limits.ResourceDays },
			"A device that has not been seen for this long is verified, and forgotten if it is gone."),
		integer("limits.max_inbound_bytes", "bytes", 2097152, 65536, 16777216, func(c *Config) *int { return &c.Limits.MaxInboundBytes },
			"A larger stanza is skipped as it streams in, and answered with an error. What a client sends can arrive six times as large, by escaping."),
		integer("limits.max_inbound_depth", "levels", 128, 16, 1024, func(c *Config) *int { return &c.Limits.MaxInboundDepth },
			"A stanza with elements nested deeper than this is treated likewise."),
		integer("limits.caps_cache", "entries", 4096, 16, 1048576, func(c *Config) *int { return &c.Limits.CapsCache },
			"Capabilities of clients (XEP-0115, XEP-0390) that are remembered."),
		number("limits.mass_delete_share", "part of the records", 0.9, 0.01, 1, func(c *Config) *float64 { return &c.Limits.MassDeleteShare },
			"A change that removes more than this part of a vault has to be confirmed by the device."),
		integer("limits.mass_delete_min", "records", 8, 1, 32768, func(c *Config) *int { return &c.Limits.MassDeleteMin },
			"Such a change of at most this many records needs no confirmation."),
		truth("limits.foreign_payloads", true, func(c *Config) *bool { return &c.Limits.ForeignPayloads },
			"Whether records with an element other than our own are taken. Many existing clients send such."),
	}
}

func storeKeys() []key {
	return []key{
		choice("store.driver", DriverSQLite, drivers(), func(c *Config) *string { return &c.Store.Driver },
			"The kind of store."),
		text("store.path", "pepvault.db", "the path of a file", filePath, func(c *Config) *string { return &c.Store.Path },
			"The database. A relative path counts from the folder of this file. It is made when missing; one process at a time may use it."),
	}
}

func streamKeys() []key {
	confirm := text("stream.confirm_jid", "", `a domain, such as "example.org"`, domain,
		func(c *Config) *string { return &c.Stream.ConfirmJID },
		"Who is pinged to learn that the server has taken what was sent before: a virtual host of that server.")
	confirm.example, confirm.derived = `"example.org"`, "the parent domain of component.jid"
	return []key{
		integer("stream.chunk_bytes", "bytes", 32768, 4096, 262144, func(c *Config) *int { return &c.Stream.ChunkBytes },
			"Size of a chunk of a pushed download. A chunk holds at least one record, whatever its size."),
		integer("stream.max_stanza_bytes", "bytes", 491520, 65536, mostStanzaBytes, func(c *Config) *int { return &c.Stream.MaxStanzaBytes },
			"The largest stanza that is sent. Servers close the stream above 512 KiB, counted after their own additions."),
		integer("stream.device_window", "chunks", 4, 1, 64, func(c *Config) *int { return &c.Stream.DeviceWindow },
			"Chunks that may be on their way to a device without its acknowledgement."),
		integer("stream.host_window_bytes", "bytes", 65536, 4096, 4194304, func(c *Config) *int { return &c.Stream.HostWindowBytes },
			"How much of large answers and downloads may be on its way to the server without its confirmation; one stanza may always go. More makes small answers wait behind it."),
		integer("stream.queue_bytes", "bytes", 16777216, 1048576, 1<<30, func(c *Config) *int { return &c.Stream.QueueBytes },
			"Answers and events that may wait to be sent. Above it, requests are refused for a while; refusals have a sixteenth of it beside that."),
		confirm,
		duration("stream.ack_timeout", "60s", time.Second, time.Hour, func(c *Config) *time.Duration { return &c.Stream.AckTimeout },
			"A download that a device does not acknowledge for this long ends."),
		duration("stream.verify_timeout", "60s", time.Second, time.Hour, func(c *Config) *time.Duration { return &c.Stream.VerifyTimeout },
			"A device that does not answer for this long when it is verified is forgotten."),
		duration("stream.confirm_timeout", "10s", time.Second, 5*time.Minute, func(c *Config) *time.Duration { return &c.Stream.ConfirmTimeout },
			"A server that does not answer a ping for this long counts as lost: the service connects anew."),
	}
}

func otherKeys() []key {
	return []key{
		text("http.listen", "127.0.0.1:9380", `"" or HOST:PORT`, listenAddress, func(c *Config) *string { return &c.HTTP.Listen },
			"Where the HTTP server listens; \"\" = off. It asks nobody who they are: leave it on a loopback address, or put something before it that does."),
		choice("log.level", "info", levels(), func(c *Config) *slog.Level { return &c.Log.Level },
			"The least important lines that are logged."),
		choice("log.format", LogText, plainOptions(LogText, LogJSON), func(c *Config) *string { return &c.Log.Format },
			"key=value lines, or a JSON object a line."),
	}
}
