-- Lets Prosody take in what pepvault sends: put these two lines into the global part of prosody.cfg.lua, above the first VirtualHost.
network_default_read_size = 65536
network_settings = { nagle = false, tcp_backlog = 1024 }
-- Recommended beside them, for smaller pauses: gc = { mode = "incremental", threshold = 200 }
