//go:build !amd64

package limits

// streamStores is nil: this architecture's non-temporal stores are not used here.
func streamStores() (store func(p []byte)) { return nil }
