module evaluate

go 1.22

require (
	github.com/tidwall/gjson v1.17.1
	github.com/xiatechs/jsonata-go v1.8.8
)

require (
	github.com/goccy/go-json v0.10.2 // indirect
	github.com/ncruces/go-strftime v0.1.9 // indirect
	github.com/shopspring/decimal v1.3.1 // indirect
	github.com/tidwall/match v1.1.1 // indirect
	github.com/tidwall/pretty v1.2.0 // indirect
)
