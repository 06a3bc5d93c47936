package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"pepvault/bench/lab"
	"pepvault/bench/page"
)

type reportCmd struct {
	Files []string `arg:"" name:"file" help:"Results files of runs (--out), of any workloads."`
	HTML  *string  `name:"html" placeholder:"FILE" help:"Write a page with charts that needs nothing but itself."`
	MD    *string  `name:"md" placeholder:"FILE" help:"Write Markdown. Without any of these, it goes to standard output."`
	JSON  *string  `name:"json" placeholder:"FILE" help:"Write all figures as JSON."`
}

// Run makes one report of all files.
func (c *reportCmd) Run(p *process) error {
	if err := c.check(); err != nil {
		return err
	}
	runs := make([]page.Run, 0, len(c.Files))
	for _, file := range c.Files {
		run, err := page.Load(file)
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	report := page.Build(runs)
	if c.HTML == nil && c.MD == nil && c.JSON == nil {
		return report.WriteMarkdown(p.stdout)
	}
	for _, out := range []struct {
		path  *string
		write func(io.Writer) error
	}{{c.HTML, report.WriteHTML}, {c.MD, report.WriteMarkdown}, {c.JSON, report.WriteJSON}} {
		if out.path == nil {
			continue
		}
		if err := writeFile(*out.path, out.write); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	return nil
}

// check refuses outputs without a name, and those that would replace a results
// file or one another.
func (c *reportCmd) check() error {
	taken := slices.Clone(c.Files)
	for _, out := range []struct {
		flag string
		path *string
	}{{"--html", c.HTML}, {"--md", c.MD}, {"--json", c.JSON}} {
		if out.path == nil {
			continue
		}
		if *out.path == "" {
			return fmt.Errorf("%w: %s names no file", lab.ErrUsage, out.flag)
		}
		there, err := os.Stat(*out.path)
		for _, path := range taken {
			other, otherErr := os.Stat(path)
			if filepath.Clean(path) == filepath.Clean(*out.path) || err == nil && otherErr == nil && there.Mode().IsRegular() && os.SameFile(there, other) {
				return fmt.Errorf("report: %s would be written over %s", *out.path, path)
			}
		}
		taken = append(taken, *out.path)
	}
	return nil
}

// writeFile replaces a file once all of it is written and on the disk, so that
// nobody sees half a report, not even after a power failure. What is no file, such
// as a pipe, is written to.
func writeFile(path string, write func(io.Writer) error) (err error) {
	mode := os.FileMode(0o644)
	if there, err := os.Stat(path); err == nil {
		if !there.Mode().IsRegular() && !there.IsDir() {
			return writeTo(path, write)
		}
		if mode = there.Mode().Perm(); there.Mode().IsRegular() {
			if path, err = filepath.EvalSymlinks(path); err != nil {
				return err
			}
		}
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".report-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(mode); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes a new name durable, where the file system can.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	err = folder.Sync()
	if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, fs.ErrInvalid) {
		err = nil
	}
	return errors.Join(err, folder.Close())
}

func writeTo(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}
