-- Attaches pepvault to Prosody: append these two lines to prosody.cfg.lua, behind the last VirtualHost.
Component "vault.example.org"
	component_secret = "change-me"
-- Recommended in the global part, above the first VirtualHost (component_ports = { 5347 } is the default):
--   network_settings = { nagle = false }; gc = { mode = "incremental", threshold = 200 }
