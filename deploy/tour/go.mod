module github.com/holdfast-go/holdfast/deploy/tour

go 1.26.0

replace github.com/holdfast-go/holdfast => ../../

require github.com/holdfast-go/holdfast v0.0.0
