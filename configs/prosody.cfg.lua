-- Attaches pepvault to Prosody: append these two lines to prosody.cfg.lua, behind the last VirtualHost
-- (component_ports = { 5347 } is the default). prosody-global.cfg.lua has two more for the global part.
Component "vault.example.org"
	component_secret = "change-me"
