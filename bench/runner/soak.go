package runner

import (
	"pepvault/bench/fleet"
	"pepvault/bench/report"
	"pepvault/bench/workload"
)

// A soak has each account's devices sit there and hear of everything, while one
// more device of the account, which hears of nothing, saves. So all subscribers
// are idle, each save goes to all of its account's, and no account has more
// devices than the service takes by itself.

// writers is how many devices of an account save and do not listen.
func writers(w report.Workload) int {
	if w.Name == Soak {
		return 1
	}
	return 0
}

// device is who carries out an operation.
func (r *run) device(op workload.Op) *fleet.Device {
	if r.Work.Name == Soak {
		op.Device = r.Work.Devices
	}
	return r.fleet.Device(op.User, op.Device)
}

// listens reports whether a device is to hear of saves.
func (r *run) listens(d *fleet.Device) bool { return d.Number < r.Work.Devices }
