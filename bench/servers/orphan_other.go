//go:build !linux

package servers

import "syscall"

// endWithUs does nothing: only Linux can.
func endWithUs(*syscall.SysProcAttr) {}
