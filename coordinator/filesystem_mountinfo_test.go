package coordinator

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMountinfoLinesReadAsTheKernelWritesThem(t *testing.T) {
	for _, c := range []struct {
		name, line string
		want       []mount
	}{
		{
			"plain", "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard\n",
			[]mount{{27, 254, 0, "/", "rw,relatime", "ext4", "/dev/vda", "rw,discard"}},
		},
		{
			"tags", "36 35 98:1048575 /mnt1 /mnt2 ro,noatime master:1 propagate_from:2 unbindable - nfs4 server:/export rw,vers=4.2,hard",
			[]mount{{36, 98, 1048575, "/mnt2", "ro,noatime", "nfs4", "server:/export", "rw,vers=4.2,hard"}},
		},
		{
			"escapes", `40 27 0:44 / /mnt/a\040b\011c\012d\134e\043f rw - fuse.sshfs user@host:/dir\040x rw,user_id=0`,
			[]mount{{40, 0, 44, "/mnt/a b\tc\nd\\e#f", "rw", "fuse.sshfs", "user@host:/dir x", "rw,user_id=0"}},
		},
		{
			"an escaped escape is read once", `41 27 0:45 / /mnt/\134040 rw - tmpfs tmpfs rw`,
			[]mount{{41, 0, 45, `/mnt/\040`, "rw", "tmpfs", "tmpfs", "rw"}},
		},
		{
			"what is no escape stays", `42 27 0:46 / /a\9b\04 rw - tmpfs \777 rw`,
			[]mount{{42, 0, 46, `/a\9b\04`, "rw", "tmpfs", `\777`, "rw"}},
		},
		{
			"an empty source", "43 27 0:47 / /empty rw -  tmpfs  rw\n43 27 0:47 / /empty rw - tmpfs  rw",
			[]mount{{43, 0, 47, "/empty", "rw", "", "tmpfs", ""}, {43, 0, 47, "/empty", "rw", "tmpfs", "", "rw"}},
		},
		{
			"a mount point that is a dash", "44 27 0:48 / - rw - tmpfs none rw",
			[]mount{{44, 0, 48, "-", "rw", "tmpfs", "none", "rw"}},
		},
		{"no dash", "45 27 0:49 / /x rw tmpfs none rw", nil},
		{"cut", "45 27 0:49 / /x rw - tmpfs none", nil},
		{"no number", "x 27 0:49 / /x rw - tmpfs none rw\n1 27 0-49 / /x rw - tmpfs none rw\n1 27 0:99999999999 / /x rw - tmpfs none rw", nil},
		{"nothing", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := parseMountinfo([]byte(c.line))
			if diff := cmp.Diff(c.want, got, cmp.AllowUnexported(mount{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestMountOptionsOfAReadOnlyMountOfAWritableFileSystemSayReadOnly(t *testing.T) {
	m := mount{options: "ro,noatime", superOptions: "rw,discard,noatime,data=ordered"}
	if got, want := m.allOptions(), "ro,noatime,discard,data=ordered"; got != want {
		t.Errorf("options are %q, want %q", got, want)
	}
}

func FuzzParseMountinfo(f *testing.F) {
	f.Add([]byte("27 1 254:0 / /a\\040b rw,relatime shared:1 - ext4 /dev/vda rw,discard\n"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		for _, m := range parseMountinfo(text) {
			_ = m.allOptions()
		}
	})
}
