package configs

import _ "embed" // for the files that operators paste

// ProsodyFragment is prosody.cfg.lua: the lines that attach the service to
// Prosody, with its example values.
//
//go:embed prosody.cfg.lua
var ProsodyFragment string

// ProsodyGlobal is prosody-global.cfg.lua: the lines of Prosody's global part
// without which it takes in large answers a few KiB at a time, and only when it
// has nothing else to do.
//
//go:embed prosody-global.cfg.lua
var ProsodyGlobal string

// EjabberdFragment is ejabberd.yml: the entry of its "listen:" section that
// attaches the service to ejabberd, with its example values.
//
//go:embed ejabberd.yml
var EjabberdFragment string

// EjabberdControl is ejabberdctl.cfg: the line of its start script's
// configuration without which it reads 1,460 bytes at a time.
//
//go:embed ejabberdctl.cfg
var EjabberdControl string
