/** [telemetry]: traces to an OpenTelemetry collector (docs/guides/operations/telemetry.md). */
import { z } from 'zod'
import { flag, notes, text, url } from '../../kernel/config/kinds.js'
import { section, type SettingsOf } from '../../kernel/config/section.js'

/** `name=value`, several with commas, as in OTEL_EXPORTER_OTLP_HEADERS. */
const HEADERS =
  /^[!#$%&'*+.^_`|~0-9A-Za-z-]+=[\x21-\x2b\x2d-\x7e]*(?:,[!#$%&'*+.^_`|~0-9A-Za-z-]+=[\x21-\x2b\x2d-\x7e]*)*$/

export const telemetrySettings = section(
  'telemetry',
  {
    enabled: flag(false).describe('Send traces of requests to a collector.'),
    otlp_endpoint: url(['http:', 'https:'], 'an http or https URL', 'http://127.0.0.1:4318')
      .default('http://127.0.0.1:4318')
      .describe('The collector: OTLP over HTTP with JSON. /v1/traces is added to its path.'),
    sample_ratio: z
      .number()
      .min(0)
      .max(1)
      .default(1)
      .describe(
        'Share of traces that are recorded, 0 to 1. A trusted sender decides for its own traces.',
      ),
    service_name: text('svc').default('svc').describe('The name of the service in traces.'),
    headers: z
      .string()
      .regex(HEADERS)
      .register(notes, {
        secret: true,
        words: 'name=value, several with commas',
        example: 'authorization=change-this-value',
      })
      .optional()
      .describe('Header fields for the collector, for example its API key: name=value,name=value.'),
  },
  { about: 'Traces of requests (OpenTelemetry).' },
)

export type TelemetrySettings = SettingsOf<typeof telemetrySettings>
