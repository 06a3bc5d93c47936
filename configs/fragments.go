package configs

import _ "embed" // for the files that operators paste

// ProsodyFragment is prosody.cfg.lua: the lines that attach the service to
// Prosody, with its example values.
//
//go:embed prosody.cfg.lua
var ProsodyFragment string
