/**
 * Spans by the OpenTelemetry SDK, sent as OTLP over HTTP with JSON. Loaded only when [telemetry] is on. Each thread has
 * its own exporter. The collector is an address of the operator, like the mail server, so it may be a private one.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import {
  type Attributes,
  type Context,
  ROOT_CONTEXT,
  type Span as OtelSpan,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Tracer,
} from '@opentelemetry/api'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http'
import { resourceFromAttributes } from '@opentelemetry/resources'
import {
  BasicTracerProvider,
  BatchSpanProcessor,
  type IdGenerator,
  RandomIdGenerator,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
} from '@opentelemetry/sdk-trace-base'
import type { Registry } from 'prom-client'
import { Counter } from 'prom-client'
import {
  isSampledAt,
  readTraceparent,
  type Span,
  type SpanAttributes,
  type SpanOptions,
  type SpanRole,
  type Tracing,
  writeTraceparent,
} from '../../kernel/tracing.js'
import type { TelemetrySettings } from './settings.js'

const EXPORT_MS = 5_000
const BATCH = { maxQueueSize: 8_192, maxExportBatchSize: 512, scheduledDelayMillis: 1_000 }
const KINDS: Readonly<Record<SpanRole, SpanKind>> = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  internal: SpanKind.INTERNAL,
}
/** The code of a successful export in OpenTelemetry. */
const EXPORTED = 0

/** What the spans of this thread say of their origin. */
interface SpanSource {
  readonly plane: string
  /** `main` or the name of a worker thread. */
  readonly thread: string
  readonly version: string
}

export function openTelemetry(
  settings: TelemetrySettings,
  { plane, thread, version }: SpanSource,
  registry: Registry,
): Tracing {
  const ids = new ChosenIds()
  const processor = new BatchSpanProcessor(counted(exporterOf(settings), registry), BATCH)
  const provider = new BasicTracerProvider({
    resource: resourceFromAttributes({
      'service.name': settings.service_name,
      'service.version': version,
      'service.instance.id': `${process.pid}`,
      'svc.plane': plane,
      'thread.name': thread,
    }),
    sampler: new MixedRatio(settings.sample_ratio),
    idGenerator: ids,
    spanProcessors: [processor],
  })
  return new OpenTelemetry(provider, provider.getTracer('svc', version), ids)
}

function exporterOf({ otlp_endpoint: endpoint, headers }: TelemetrySettings): SpanExporter {
  const url = new URL(endpoint)
  if (!url.pathname.endsWith('/v1/traces'))
    url.pathname = `${url.pathname.replace(/\/$/, '')}/v1/traces`
  const pairs = (headers ?? '').split(',').filter((pair) => pair !== '')
  return new OTLPTraceExporter({
    url: url.href,
    headers: Object.fromEntries(
      pairs.map((pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)]),
    ),
    timeoutMillis: EXPORT_MS,
  })
}

/** Counts what the collector accepted. */
function counted(exporter: SpanExporter, registry: Registry): SpanExporter {
  const spans = new Counter({
    name: 'svc_telemetry_spans_total',
    help: 'Spans by outcome of their export: sent or failed.',
    labelNames: ['outcome'],
    registers: [registry],
  })
  for (const outcome of ['sent', 'failed']) spans.inc({ outcome }, 0)
  return {
    export(batch: ReadableSpan[], done) {
      exporter.export(batch, (result) => {
        spans.inc({ outcome: result.code === EXPORTED ? 'sent' : 'failed' }, batch.length)
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
    forceFlush: async () => exporter.forceFlush?.(),
  }
}

/** Random ids, and a chosen trace id for the next new trace. */
class ChosenIds implements IdGenerator {
  readonly #random = new RandomIdGenerator()
  next: string | undefined

  generateTraceId(): string {
    const { next } = this
    this.next = undefined
    return next ?? this.#random.generateTraceId()
  }

  generateSpanId(): string {
    return this.#random.generateSpanId()
  }
}

/** A parent decides. Without one the trace id does. */
class MixedRatio implements Sampler {
  readonly #ratio: number

  constructor(ratio: number) {
    this.#ratio = ratio
  }

  shouldSample(context: Context, traceId: string) {
    const parent = trace.getSpanContext(context)
    const isSampled =
      parent === undefined
        ? isSampledAt(this.#ratio, traceId)
        : (parent.traceFlags & TraceFlags.SAMPLED) !== 0
    return {
      decision: isSampled ? SamplingDecision.RECORD_AND_SAMPLED : SamplingDecision.NOT_RECORD,
    }
  }

  toString(): string {
    return `MixedRatio{${this.#ratio}}`
  }
}

class OpenSpan implements Span {
  readonly otel: OtelSpan
  readonly context: Context
  readonly traceparent: string
  #isOver = false

  constructor(otel: OtelSpan) {
    this.otel = otel
    this.context = trace.setSpan(ROOT_CONTEXT, otel)
    const { traceId, spanId, traceFlags } = otel.spanContext()
    const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0
    this.traceparent = writeTraceparent({ traceId, spanId, isSampled })
  }

  rename(name: string): void {
    this.otel.updateName(name)
  }

  set(attributes: SpanAttributes): void {
    this.otel.setAttributes(attributes as Attributes)
  }

  end(failure?: string): void {
    if (this.#isOver) return
    this.#isOver = true
    if (failure !== undefined) {
      this.otel.setAttribute('error.type', failure)
      this.otel.setStatus({ code: SpanStatusCode.ERROR })
    }
    this.otel.end()
  }
}

class OpenTelemetry implements Tracing {
  readonly #provider: BasicTracerProvider
  readonly #tracer: Tracer
  readonly #ids: ChosenIds
  readonly #running = new AsyncLocalStorage<OpenSpan>()

  constructor(provider: BasicTracerProvider, tracer: Tracer, ids: ChosenIds) {
    this.#provider = provider
    this.#tracer = tracer
    this.#ids = ids
  }

  begin(name: string, { role = 'internal', attributes, parent, traceId }: SpanOptions = {}): Span {
    const context = this.#contextOf(parent)
    if (context === ROOT_CONTEXT) this.#ids.next = traceId
    const options = { kind: KINDS[role], attributes: (attributes ?? {}) as Attributes }
    const span = this.#tracer.startSpan(name, options, context)
    this.#ids.next = undefined
    return new OpenSpan(span)
  }

  #contextOf(parent: string | undefined): Context {
    if (parent === undefined) return this.#running.getStore()?.context ?? ROOT_CONTEXT
    const remote = readTraceparent(parent)
    if (remote === undefined) return ROOT_CONTEXT
    const { traceId, spanId, isSampled } = remote
    const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE
    return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true })
  }

  current(): Span | undefined {
    return this.#running.getStore()
  }

  within<T>(span: Span, work: () => T): T {
    return this.#running.run(span as OpenSpan, work)
  }

  async stop(): Promise<void> {
    await this.#provider.shutdown()
  }
}
