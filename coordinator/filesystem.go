package coordinator

// FileSystem is what is known of the file system that holds an output.
type FileSystem struct {
	Type             string `json:"type"` // "ext4", "xfs", "btrfs", "zfs", "tmpfs", "nfs", "cifs", "9p", "fuse", or the magic number in hex
	MountPoint       string `json:"mount_point,omitempty"`
	MountOptions     string `json:"mount_options,omitempty"`
	Device           string `json:"device,omitempty"`
	BlockBytes       int64  `json:"block_bytes"`
	FreeBytes        int64  `json:"free_bytes"` // available to us, not to root
	ExclusiveRename  bool   `json:"exclusive_rename"`
	HardLinks        bool   `json:"hard_links"`
	Allocation       bool   `json:"allocation"` // whether space can be reserved (fallocate)
	DirectIO         bool   `json:"direct_io"`
	DirectAlignBytes int64  `json:"direct_align_bytes,omitempty"`
}
