package servers

import "syscall"

// endWithUs has the kernel kill a process when the thread that started it ends.
func endWithUs(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }
