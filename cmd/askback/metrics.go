package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/askback/askback/pipeline/telemetry"
)

// newMetrics counts turns, and gives what else can be counted with and the page that
// Prometheus reads it all from.
func newMetrics() (*telemetry.Metrics, *metric.MeterProvider, http.Handler, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, nil, nil, err
	}
	provider := metric.NewMeterProvider(metric.WithReader(exporter))
	metrics, err := telemetry.New(provider)
	return metrics, provider, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}
