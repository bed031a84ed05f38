// Package faultfs mounts a file system for tests, whose operations fail when a
// test wants them to. It is a directory seen through FUSE, so that whatever
// reads or writes below it meets the faults, whoever opened the file.
package faultfs

import (
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// Plan says which operations fail. The zero value lets all succeed.
type Plan struct {
	First int           // the first operation to fail, counted from 1
	Last  int           // the last one
	Errno syscall.Errno // what it fails with
	Late  bool          // it is carried out before it fails, as by a server whose answer is lost
	Reads bool          // operations that change nothing count, and no others
	Do    func()        // called before the first one, which fails only with Errno
}

// Forever as the last operation lets a disk stay broken.
const Forever = int(^uint(0) >> 1)

// FS is a mounted file system.
type FS struct {
	Dir     string // where it is mounted
	Backing string // where its files are, without faults

	mu   sync.Mutex
	plan Plan
	n    int
	hit  []string
}

// Mount makes a file system, which goes with the test. Where the system does
// not let the test mount one, the test is skipped.
func Mount(t *testing.T) *FS {
	t.Helper()
	top := t.TempDir()
	f := &FS{Dir: filepath.Join(top, "mounted"), Backing: filepath.Join(top, "backing")}
	for _, d := range []string{f.Dir, f.Backing} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	root, err := fs.NewLoopbackRoot(f.Backing)
	if err != nil {
		t.Fatal(err)
	}
	options := &fs.Options{MountOptions: fuse.MountOptions{DirectMount: true, Name: "faultfs", DisableXAttrs: true}}
	server, err := fuse.NewServer(&faulty{fs.NewNodeFS(root, options), f}, f.Dir, &options.MountOptions)
	if err != nil {
		t.Skipf("SKIPPED: no FUSE here, faults of the file system are not tested: %v", err)
	}
	go server.Serve()
	if err := server.WaitMount(); err != nil {
		t.Skipf("SKIPPED: no FUSE here, faults of the file system are not tested: %v", err)
	}
	t.Cleanup(func() {
		if err := server.Unmount(); err != nil {
			_ = syscall.Unmount(f.Dir, syscall.MNT_DETACH)
		}
	})
	return f
}

// Set begins to count operations anew, and lets some fail.
func (f *FS) Set(p Plan) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.plan, f.n, f.hit = p, 0, nil
}

// Stop ends all faults. It returns how many operations of the kind there were,
// and which failed.
func (f *FS) Stop() (n int, hit []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, hit = f.n, f.hit
	f.plan, f.n, f.hit = Plan{First: 1}, 0, nil
	return n, hit
}

// next counts an operation and reports whether and how it is to fail.
func (f *FS) next(op, name string, reads bool) (errno syscall.Errno, late bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if reads != f.plan.Reads {
		return 0, false
	}
	f.n++
	if f.plan.Do != nil && f.n == f.plan.First {
		f.plan.Do()
	}
	if f.n < f.plan.First || f.n > f.plan.Last {
		return 0, false
	}
	f.hit = append(f.hit, op+" "+name)
	return f.plan.Errno, f.plan.Late
}

// faulty passes operations on, or lets them fail.
type faulty struct {
	fuse.RawFileSystem
	f *FS
}

func (x *faulty) change(op, name string, do func() fuse.Status) fuse.Status {
	return x.pass(op, name, false, do)
}

func (x *faulty) look(op, name string, do func() fuse.Status) fuse.Status {
	return x.pass(op, name, true, do)
}

func (x *faulty) pass(op, name string, reads bool, do func() fuse.Status) fuse.Status {
	errno, late := x.f.next(op, name, reads)
	switch {
	case errno == 0:
		return do()
	case late:
		do()
	}
	return fuse.Status(errno)
}

func (x *faulty) Lookup(c <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return x.look("lookup", name, func() fuse.Status { return x.RawFileSystem.Lookup(c, h, name, out) })
}

func (x *faulty) Open(c <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return x.look("open", "", func() fuse.Status {
		s := x.RawFileSystem.Open(c, in, out)
		seen(out)
		return s
	})
}

// seen makes the kernel ask us about every read and write of an open file.
func seen(out *fuse.OpenOut) {
	out.OpenFlags &^= fuse.FOPEN_PASSTHROUGH
	out.BackingID = 0
}

func (x *faulty) Read(c <-chan struct{}, in *fuse.ReadIn, buf []byte) (r fuse.ReadResult, s fuse.Status) {
	s = x.look("read", "", func() (s fuse.Status) { r, s = x.RawFileSystem.Read(c, in, buf); return s })
	return r, s
}

func (x *faulty) OpenDir(c <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return x.look("opendir", "", func() fuse.Status { return x.RawFileSystem.OpenDir(c, in, out) })
}

func (x *faulty) ReadDir(c <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return x.look("readdir", "", func() fuse.Status { return x.RawFileSystem.ReadDir(c, in, out) })
}

func (x *faulty) ReadDirPlus(c <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return x.look("readdir", "", func() fuse.Status { return x.RawFileSystem.ReadDirPlus(c, in, out) })
}

func (x *faulty) SetAttr(c <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return x.change("setattr", "", func() fuse.Status { return x.RawFileSystem.SetAttr(c, in, out) })
}

func (x *faulty) Mkdir(c <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return x.change("mkdir", name, func() fuse.Status { return x.RawFileSystem.Mkdir(c, in, name, out) })
}

func (x *faulty) Unlink(c <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return x.change("unlink", name, func() fuse.Status { return x.RawFileSystem.Unlink(c, h, name) })
}

func (x *faulty) Rmdir(c <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return x.change("rmdir", name, func() fuse.Status { return x.RawFileSystem.Rmdir(c, h, name) })
}

func (x *faulty) Rename(c <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	return x.change("rename", to, func() fuse.Status { return x.RawFileSystem.Rename(c, in, from, to) })
}

func (x *faulty) Link(c <-chan struct{}, in *fuse.LinkIn, name string, out *fuse.EntryOut) fuse.Status {
	return x.change("link", name, func() fuse.Status { return x.RawFileSystem.Link(c, in, name, out) })
}

func (x *faulty) Create(c <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return x.change("create", name, func() fuse.Status {
		s := x.RawFileSystem.Create(c, in, name, out)
		seen(&out.OpenOut)
		return s
	})
}

func (x *faulty) Write(c <-chan struct{}, in *fuse.WriteIn, data []byte) (n uint32, s fuse.Status) {
	s = x.change("write", "", func() (s fuse.Status) { n, s = x.RawFileSystem.Write(c, in, data); return s })
	return n, s
}

func (x *faulty) Writev(c <-chan struct{}, in *fuse.WriteIn, data [][]byte) (uint32, fuse.Status) {
	return x.Write(c, in, slices.Concat(data...))
}

// CopyFileRange leaves all to Read and Write.
func (x *faulty) CopyFileRange(<-chan struct{}, *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	return 0, fuse.ENOSYS
}

func (x *faulty) Flush(c <-chan struct{}, in *fuse.FlushIn) fuse.Status {
	return x.change("close", "", func() fuse.Status { return x.RawFileSystem.Flush(c, in) })
}

func (x *faulty) Fsync(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return x.change("fsync", "", func() fuse.Status { return fuse.OK })
}

func (x *faulty) FsyncDir(c <-chan struct{}, in *fuse.FsyncIn) fuse.Status {
	return x.change("fsync of a directory", "", func() fuse.Status { return fuse.OK })
}
