/** The span of an outgoing request, and its `traceparent` header (W3C Trace Context). */
import type { Dispatcher } from 'undici'
import type { Span, Tracing } from '../../../runtime/kernel/tracing.js'

type Traced = {
  readonly options: Dispatcher.DispatchOptions
  readonly handler: Dispatcher.DispatchHandler
}

const NAME = 'traceparent'

/** A `traceparent` that the caller of an egress call set stays: the trace behind the upstream is the caller's. */
export function traceDispatch(
  tracing: Tracing,
  options: Dispatcher.DispatchOptions,
  handler: Dispatcher.DispatchHandler,
): Traced {
  const { hostname, port } = new URL(String(options.origin ?? 'https://unknown'))
  const span = tracing.begin(options.method, {
    role: 'client',
    attributes: {
      'http.request.method': options.method,
      'server.address': hostname,
      'server.port': Number(port || '443'),
    },
  })
  return {
    options: { ...options, headers: withParent(options.headers, span.traceparent) },
    handler: watched(handler, span),
  }
}

function withParent(
  headers: Dispatcher.DispatchOptions['headers'],
  traceparent: string,
): NonNullable<Dispatcher.DispatchOptions['headers']> {
  if (headers === null || headers === undefined) return { [NAME]: traceparent }
  if (Array.isArray(headers)) {
    const flat = headers as readonly unknown[]
    const isPairs = flat.length > 0 && Array.isArray(flat[0])
    const names = isPairs
      ? (flat as readonly (readonly [string, string])[]).map(([name]) => name)
      : (flat as readonly string[]).filter((_, index) => index % 2 === 0)
    if (names.some((name) => name.toLowerCase() === NAME)) return headers
    return (isPairs
      ? [...flat, [NAME, traceparent]]
      : [...flat, NAME, traceparent]) as unknown as NonNullable<
      Dispatcher.DispatchOptions['headers']
    >
  }
  if (Symbol.iterator in headers) return headers
  const named = headers as Readonly<Record<string, string>>
  const isSet = Object.keys(named).some((name) => name.toLowerCase() === NAME)
  return isSet ? headers : { ...named, [NAME]: traceparent }
}

/**
 * Watches the calls of a handler. undici has two kinds of handlers with different names of methods, so the calls are
 * passed on unchanged.
 */
function watched(handler: Dispatcher.DispatchHandler, span: Span): Dispatcher.DispatchHandler {
  const notice = (name: string | symbol, given: readonly unknown[]) => {
    const status = name === 'onHeaders' ? given[0] : name === 'onResponseStart' ? given[1] : null
    // Interim responses precede the response (RFC 9110 section 15.2).
    if (typeof status === 'number' && status >= 200)
      span.set({ 'http.response.status_code': status })
    if (name === 'onComplete' || name === 'onResponseEnd') span.end()
    if (name === 'onError' || name === 'onResponseError') span.end('connection')
  }
  return new Proxy(handler, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      return (...given: readonly unknown[]) => {
        notice(name, given)
        return member.apply(target, given) as unknown
      }
    },
  })
}
