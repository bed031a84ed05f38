//go:build !nocloud

// Package cloud makes the object stores of Amazon, Google and Microsoft, and
// those that speak their protocols, known to package store.
package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/storage"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	azblobblob "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/aws/aws-sdk-go-v2/feature/s3/transfermanager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"gocloud.dev/blob"
	_ "gocloud.dev/blob/azureblob" // azblob://
	_ "gocloud.dev/blob/gcsblob"   // gs://
	_ "gocloud.dev/blob/s3blob"    // s3://

	"tracelake/internal/store"
)

func init() {
	for _, scheme := range store.Schemes {
		store.Register(scheme, open)
	}
}

// bucket is a store.
type bucket struct {
	b    *blob.Bucket
	name string // scheme and name, as in s3://traces
}

func open(ctx context.Context, scheme, name, params string) (store.Store, error) {
	b := &bucket{name: scheme + "://" + name}
	// The bucket serves as long as the process lives, whatever becomes of ctx.
	var err error
	u := url.URL{Scheme: scheme, Host: name, RawQuery: params}
	if b.b, err = blob.OpenBucket(context.WithoutCancel(ctx), u.String()); err != nil {
		return nil, store.NewError(b.name, opening(err), err)
	}
	return b, nil
}

// URL names a key without parameters.
func (b *bucket) URL(key string) string { return b.name + "/" + key }

// smallTimeout bounds a request that carries little.
const smallTimeout = time.Minute

// maxRounds is how often a request is tried, on top of what the library of the
// store does.
const maxRounds = 4

// do carries out a request until it succeeds or can only fail.
func (b *bucket) do(ctx context.Context, key string, timeout time.Duration, f func(context.Context) error) error {
	for round := 1; ; round++ {
		once, cancel := context.WithTimeout(ctx, timeout)
		err := f(once)
		cancel()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return store.NewError(b.URL(key), store.Canceled, ctx.Err())
		}
		e := b.error(key, err)
		if round == maxRounds || e.Kind != store.Broken && e.Kind != store.Throttled {
			return e
		}
		if err := store.BackOff(ctx, round); err != nil {
			return store.NewError(b.URL(key), store.Canceled, err)
		}
	}
}

func (b *bucket) Stat(ctx context.Context, key string) (info store.Info, err error) {
	err = b.do(ctx, key, smallTimeout, func(ctx context.Context) error {
		a, err := b.b.Attributes(ctx, key)
		if err != nil {
			return err
		}
		info = store.Info{Key: key, Size: a.Size, Modified: a.ModTime.Truncate(time.Second), Version: trim(a.ETag)}
		var gs storage.ObjectAttrs
		if a.As(&gs) {
			info.Version = generation(&gs)
		}
		return nil
	})
	return info, err
}

func (b *bucket) List(ctx context.Context, prefix string, each func(store.Info) error) error {
	return b.pages(ctx, &blob.ListOptions{Prefix: prefix}, func(o *blob.ListObject) error {
		return each(describe(o))
	})
}

func (b *bucket) Dirs(ctx context.Context, prefix string) (names []string, err error) {
	err = b.pages(ctx, &blob.ListOptions{Prefix: prefix, Delimiter: "/"}, func(o *blob.ListObject) error {
		if o.IsDir {
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(o.Key, prefix), "/"))
		}
		return nil
	})
	return names, err
}

const pageSize = 1000

func (b *bucket) pages(ctx context.Context, o *blob.ListOptions, each func(*blob.ListObject) error) error {
	token := blob.FirstPageToken
	for token != nil {
		var page []*blob.ListObject
		var next []byte
		err := b.do(ctx, o.Prefix, smallTimeout, func(ctx context.Context) (err error) {
			page, next, err = b.b.ListPage(ctx, token, pageSize, o)
			return err
		})
		var e *store.Error
		if errors.As(err, &e) && e.Kind == store.NotFound {
			e.Kind = store.NoBucket // a bucket without such keys has an empty list
		}
		if err != nil {
			return err
		}
		for _, object := range page {
			if err := each(object); err != nil {
				return err
			}
		}
		token = next
	}
	return nil
}

// describe gives an object of a list the same description as Stat does.
func describe(o *blob.ListObject) store.Info {
	info := store.Info{Key: o.Key, Size: o.Size, Modified: o.ModTime.Truncate(time.Second)}
	var s3object types.Object
	var gs storage.ObjectAttrs
	var az container.BlobItem
	switch {
	case o.As(&s3object):
		if s3object.ETag != nil {
			info.Version = trim(*s3object.ETag)
		}
	case o.As(&gs):
		info.Version = generation(&gs)
	case o.As(&az):
		if az.Properties != nil && az.Properties.ETag != nil {
			info.Version = trim(string(*az.Properties.ETag))
		}
	}
	return info
}

func trim(etag string) string { return strings.Trim(etag, `"`) }

func generation(a *storage.ObjectAttrs) string { return strconv.FormatInt(a.Generation, 10) }

// Read asks for the version that info names. What the connection does later is
// up to the caller.
func (b *bucket) Read(ctx context.Context, info store.Info, offset, length int64) (io.ReadCloser, error) {
	r, err := b.b.NewRangeReader(ctx, info.Key, offset, length, &blob.ReaderOptions{BeforeRead: func(as func(any) bool) error {
		if info.Version != "" {
			pin(as, info.Version)
		}
		return quiet(as)
	}})
	if err != nil {
		e := b.error(info.Key, err)
		if e.Kind == store.Exists { // a condition that does not hold
			e.Kind = store.Changed
		}
		return nil, e
	}
	if r.Size() != info.Size || !r.ModTime().Truncate(time.Second).Equal(info.Modified) {
		r.Close()
		return nil, store.NewError(b.URL(info.Key), store.Changed, nil)
	}
	return r, nil
}

// pin makes a read fail where the object has another version.
func pin(as func(any) bool, version string) {
	etag := `"` + version + `"`
	var s3in *s3.GetObjectInput
	var gs **storage.ObjectHandle
	var az *azblobblob.DownloadStreamOptions
	switch {
	case as(&s3in):
		s3in.IfMatch = &etag
	case as(&gs):
		if n, err := strconv.ParseInt(version, 10, 64); err == nil {
			*gs = (*gs).Generation(n)
		}
	case as(&az):
		az.AccessConditions = ifMatch(etag)
	}
}

// quiet keeps the library of S3 from telling that a server sent no checksum,
// once per object.
func quiet(as func(any) bool) error {
	var options *[]func(*s3.Options)
	if as(&options) {
		*options = append(*options, func(o *s3.Options) { o.DisableLogOutputChecksumValidationSkipped = true })
	}
	return nil
}

func (b *bucket) Get(ctx context.Context, key string, limit int64) (data []byte, err error) {
	err = b.do(ctx, key, smallTimeout, func(ctx context.Context) error {
		r, err := b.b.NewReader(ctx, key, &blob.ReaderOptions{BeforeRead: quiet})
		if err != nil {
			return err
		}
		defer r.Close()
		if r.Size() > limit {
			return fmt.Errorf("%d bytes are more than the %d that it may have: %w", r.Size(), limit, errFinal)
		}
		data, err = io.ReadAll(io.LimitReader(r, limit+1))
		if err == nil && int64(len(data)) != r.Size() {
			err = io.ErrUnexpectedEOF
		}
		return err
	})
	return data, err
}

// errFinal marks errors that come again however often a request is repeated.
var errFinal = errors.New("not as expected")

func (b *bucket) Put(ctx context.Context, key string, src io.ReadSeeker, size int64, on store.If) error {
	timeout := smallTimeout + time.Duration(size>>17)*time.Second // 128 KiB/s at least
	o := &blob.WriterOptions{IfNotExist: on.Absent, ContentType: contentType(key)}
	if on.Version != "" {
		o.BeforeWrite = func(as func(any) bool) error { return replace(as, on.Version) }
	}
	err := b.do(ctx, key, timeout, func(ctx context.Context) error {
		if _, err := src.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("%w: %w", err, errFinal)
		}
		return b.b.Upload(ctx, key, src, o)
	})
	var e *store.Error
	if on.Version != "" && errors.As(err, &e) && (e.Kind == store.Exists || e.Kind == store.NotFound) {
		e.Kind = store.Changed
	}
	return err
}

// replace makes a write fail where the object has another version.
func replace(as func(any) bool, version string) error {
	etag := `"` + version + `"`
	var s3in *transfermanager.UploadObjectInput
	var gs **storage.ObjectHandle
	var az *azblob.UploadStreamOptions
	switch {
	case as(&s3in):
		s3in.IfMatch = &etag
		return nil
	case as(&gs):
		n, err := strconv.ParseInt(version, 10, 64)
		*gs = (*gs).If(storage.Conditions{GenerationMatch: n})
		return err
	case as(&az):
		az.AccessConditions = ifMatch(etag)
		return nil
	}
	return fmt.Errorf("no conditional writes: %w", errFinal)
}

func ifMatch(etag string) *azblobblob.AccessConditions {
	match := azcore.ETag(etag)
	return &azblobblob.AccessConditions{ModifiedAccessConditions: &azblobblob.ModifiedAccessConditions{IfMatch: &match}}
}

func contentType(key string) string {
	if strings.HasSuffix(key, ".json") {
		return "application/json"
	}
	return "application/octet-stream"
}

func (b *bucket) Remove(ctx context.Context, key string) error {
	err := b.do(ctx, key, smallTimeout, func(ctx context.Context) error { return b.b.Delete(ctx, key) })
	var e *store.Error
	if errors.As(err, &e) && e.Kind == store.NotFound {
		return nil
	}
	return err
}
