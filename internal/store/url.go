package store

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Opener opens a bucket. Params are what stands behind the question mark.
type Opener func(ctx context.Context, scheme, bucket, params string) (Store, error)

var openers = map[string]Opener{}

// Schemes are the schemes of URLs of object stores.
var Schemes = []string{"s3", "gs", "azblob"}

// Register makes a scheme known. It is called when packages start.
func Register(scheme string, o Opener) { openers[scheme] = o }

// IsURL reports whether a name is the URL of an object store.
func IsURL(name string) bool {
	scheme, _, ok := strings.Cut(name, "://")
	return ok && slices.Contains(Schemes, scheme)
}

// Local returns the path that a file URL names, and other names as they are.
func Local(name string) (string, error) {
	if !strings.HasPrefix(name, "file:") {
		return name, nil
	}
	u, err := url.Parse(name)
	if err != nil || u.Host != "" && u.Host != "localhost" || u.Opaque != "" || u.Path == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("%s: not the URL of a local file; write file:///path, with %%23 and %%3F for # and ?", name)
	}
	return filepath.FromSlash(u.Path), nil
}

// Location is a URL taken apart.
type Location struct {
	Scheme, Bucket, Key, Params string
}

// Parse takes a URL apart. The key is taken as it is, up to a question mark.
func Parse(name string) (Location, error) {
	var l Location
	scheme, rest, _ := strings.Cut(name, "://")
	rest, l.Params, _ = strings.Cut(rest, "?")
	l.Scheme = scheme
	l.Bucket, l.Key, _ = strings.Cut(rest, "/")
	if l.Bucket == "" {
		return l, fmt.Errorf("%s: names no bucket; write %s://BUCKET/KEY", Clean(name), scheme)
	}
	if strings.ContainsAny(l.Bucket, "@:*[") {
		return l, fmt.Errorf("%s://…: not the name of a bucket; credentials come from the environment, an endpoint goes behind ?endpoint=", scheme)
	}
	if _, err := url.ParseQuery(l.Params); err != nil {
		return l, fmt.Errorf("%s://%s: what follows the question mark cannot be read", scheme, l.Bucket)
	}
	return l, nil
}

var opened struct {
	sync.Mutex
	stores map[Location]Store // by all but the key
}

// OpenURL opens the bucket of a URL, once for the same parameters.
func OpenURL(ctx context.Context, name string) (s Store, key string, err error) {
	l, err := Parse(name)
	if err != nil {
		return nil, "", err
	}
	open := openers[l.Scheme]
	if open == nil {
		return nil, "", fmt.Errorf("%s://%s: this build has no object stores (built with the tag nocloud); use the full build, or copy the files", l.Scheme, l.Bucket)
	}
	key, l.Key = l.Key, ""
	opened.Lock()
	defer opened.Unlock()
	if s := opened.stores[l]; s != nil {
		return s, key, nil
	}
	if s, err = open(ctx, l.Scheme, l.Bucket, l.Params); err != nil {
		return nil, "", err
	}
	if opened.stores == nil {
		opened.stores = map[Location]Store{}
	}
	opened.stores[l] = s
	return s, key, nil
}
