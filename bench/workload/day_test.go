package workload

import (
	"slices"
	"testing"
)

// TestDay holds that every user has a day of the promised size, that it comes
// from the seed alone, and that no two are alike.
func TestDay(t *testing.T) {
	t.Parallel()
	s := Shape{Seed: 5, Users: 200, Devices: 3, Records: 10, Bytes: 924}
	lengths, all := make(map[int]bool), 0
	for user := range s.Users {
		day := s.Day(user, 1)
		if !slices.Equal(day, s.Day(user, 1)) {
			t.Fatalf("two days of user %d in one part", user)
		}
		if slices.Equal(day, s.Day(user, 2)) || user > 0 && slices.Equal(day, s.Day(user-1, 1)) {
			t.Errorf("user %d has somebody else's day", user)
		}
		saves, devices := 0, make(map[int]bool)
		for _, visit := range day {
			saves += visit.Saves
			devices[visit.Device] = true
		}
		if len(day) < FewVisits || len(day) > ManyVisits || saves != DaySaves || len(devices) != 2+user%2 {
			t.Errorf("user %d: %d visits of %d devices with %d saves", user, len(day), len(devices), saves)
		}
		lengths[len(day)] = true
		all += len(day)
	}
	if !lengths[FewVisits] || !lengths[ManyVisits] || all < 19*s.Users || all > 21*s.Users {
		t.Errorf("%d visits in all, of %d lengths", all, len(lengths))
	}
	one := s
	one.Devices = 1
	for _, visit := range one.Day(1, 1) {
		if visit.Device != 0 {
			t.Errorf("device %d of one", visit.Device)
		}
	}
}
