package limit

import (
	"path/filepath"
	"slices"
	"strings"
)

// hierarchies finds the folders of the group that a process is in, by the texts of
// /proc/self/mountinfo and /proc/self/cgroup: those of version 1 by controller, that
// of version 2, and where the latter's hierarchy is mounted.
func hierarchies(mounts, own string) (one map[string]string, two, mount string) {
	paths := make(map[string]string) // by controller; "" is version 2
	for line := range strings.Lines(own) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			paths[controller] = fields[2]
		}
	}
	one = make(map[string]string)
	for line := range strings.Lines(mounts) {
		before, after, found := strings.Cut(strings.TrimSpace(line), " - ")
		place, kind := strings.Fields(before), strings.Fields(after)
		if !found || len(place) < 5 || len(kind) < 3 {
			continue
		}
		root, point := place[3], unescape(place[4])
		switch kind[0] {
		case "cgroup2":
			two, mount = below(point, root, paths[""]), point
		case "cgroup":
			options := strings.Split(kind[2], ",")
			for _, controller := range []string{"cpu", "cpuacct", "memory"} {
				if path, member := paths[controller]; member && slices.Contains(options, controller) {
					one[controller] = below(point, root, path)
				}
			}
		}
	}
	return one, two, mount
}

// below is the folder of a group of which a mount shows what is below its root. A
// group that lies outside is not shown: then the mount's own is the nearest.
func below(point, root, path string) string {
	rest, err := filepath.Rel(root, path)
	if err != nil || rest == ".." || strings.HasPrefix(rest, "../") {
		return point
	}
	return filepath.Join(point, rest)
}

// unescape reads a path of mountinfo.
func unescape(path string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(path)
}
