package main

import (
	"fmt"

	"pepvault/configs"
)

type configCmd struct {
	Check configCheckCmd `cmd:"" help:"Say all that is wrong with a configuration file, with line numbers."`
	Print configPrintCmd `cmd:"" help:"Print the documented default configuration file."`
}

type configCheckCmd struct {
	configFlag
}

// Run checks the file as serve would.
func (c *configCheckCmd) Run(p *process) error {
	if _, err := c.load(p); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.stdout, "%s: ok\n", c.Config)
	return err
}

type configPrintCmd struct{}

// Run prints the file.
func (*configPrintCmd) Run(p *process) error {
	_, err := p.stdout.Write(configs.Describe())
	return err
}

// configFlag is for embedding in each command that needs the configuration.
type configFlag struct {
	Config string `required:"" placeholder:"FILE" help:"The configuration file."`
}

// load reads the configuration and says its warnings.
func (f configFlag) load(p *process) (configs.Config, error) {
	config, err := configs.Load(f.Config, p.getenv)
	for _, warning := range config.Warnings {
		fmt.Fprintln(p.stderr, warning)
	}
	return config, err
}

// loadStore reads the configuration for a command that only needs the store.
func (f configFlag) loadStore(p *process) (configs.Config, error) {
	config, err := configs.LoadWithoutSecret(f.Config)
	for _, warning := range config.Warnings {
		fmt.Fprintln(p.stderr, warning)
	}
	return config, err
}
