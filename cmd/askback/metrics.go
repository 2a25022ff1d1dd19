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

// newMetrics counts turns and gives the page that Prometheus reads them from.
func newMetrics() (*telemetry.Metrics, http.Handler, error) {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo(), otelprometheus.WithoutTargetInfo())
	if err != nil {
		return nil, nil, err
	}
	metrics, err := telemetry.New(metric.NewMeterProvider(metric.WithReader(exporter)))
	return metrics, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}
