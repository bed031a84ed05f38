package schema

import _ "embed"

// SharedViewsSQL declares the views and macros that analyses share, on top of
// the views of ViewsSQL, which ends with them.
//
//go:embed shared_views.sql
var SharedViewsSQL string
