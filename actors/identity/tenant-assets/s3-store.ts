/**
 * An object store with the API of S3. The operator names it, so that it may be in a private network. Requests have the
 * bucket in their path, which S3 and every server with its API accept.
 */
import type { Clock } from '../../../runtime/kernel/clock.js'
import type { Logger } from '../../../runtime/kernel/log.js'
import { readBody } from '../../platform/outbound-http/bounded-body.js'
import { createDialer } from '../../platform/outbound-http/dialer.js'
import type { ProxySettings } from '../../platform/outbound-http/proxy-settings.js'
import { proxyErrorOf } from '../../platform/outbound-http/failures.js'
import { createUpstreams } from '../../platform/outbound-http/upstreams.js'
import { signed, type StoreCredentials } from './signature-v4.js'
import { type ObjectStore, ObjectStoreUnavailable } from './store.js'

const CONNECT_MS_MAX = 3_000
const REQUEST_MS_MAX = 10_000
/** Error documents are small. */
const ANSWER_BYTES_MAX = 64 * 1024
const NO_BYTES = new Uint8Array(0)
/** The content of a key never changes. */
const CACHE_CONTROL = 'public, max-age=31536000, immutable'

type S3StoreOptions = {
  readonly endpoint: string
  readonly bucket: string
  readonly credentials: StoreCredentials
  /** `[proxy]`. */
  readonly proxy?: ProxySettings | undefined
  readonly clock: Clock
  readonly log: Logger
  /** Counts calls by what became of them. */
  readonly count: (operation: 'put' | 'remove', outcome: 'ok' | 'failed') => void
}

export function s3Store(options: S3StoreOptions): ObjectStore {
  const { bucket, credentials, clock, log, count } = options
  const endpoint = new URL(options.endpoint)
  const base = `${endpoint.pathname.replace(/\/$/, '')}/${encodeURIComponent(bucket)}`
  const upstreams = createUpstreams(
    createDialer({
      privateNetworks: true,
      dnsOverrides: {},
      connectTimeoutMs: CONNECT_MS_MAX,
      proxy: options.proxy,
    }),
    1,
  )

  /** @throws {ObjectStoreUnavailable} unless the answer has one of the statuses. */
  async function send(
    operation: 'put' | 'remove',
    key: string,
    body: Uint8Array,
    headers: Readonly<Record<string, string>>,
    accepted: readonly number[],
  ): Promise<void> {
    const method = operation === 'put' ? 'PUT' : 'DELETE'
    const path = `${base}/${key}`
    const signal = AbortSignal.timeout(REQUEST_MS_MAX)
    let fault: string
    let answered = false
    try {
      const answer = await upstreams.of(endpoint.origin).request({
        method,
        path,
        headers: signed(
          { method, path, host: endpoint.host, headers, body },
          credentials,
          clock.now(),
        ),
        body: body.length === 0 ? null : body,
        signal,
      })
      answered = true
      const document = await readBody(answer.body, ANSWER_BYTES_MAX)
      if (accepted.includes(answer.statusCode)) return count(operation, 'ok')
      const code = /<Code>([A-Za-z0-9]{1,64})<\/Code>/.exec(document?.toString('utf8') ?? '')?.[1]
      fault = `status ${answer.statusCode}${code === undefined ? '' : ` ${code}`}`
    } catch (error) {
      fault = signal.aborted ? 'timeout' : proxyErrorOf(error, answered)
    }
    count(operation, 'failed')
    log.error({ fault, endpoint: endpoint.origin, bucket, method }, 'the object store failed')
    throw new ObjectStoreUnavailable(`the object store failed: ${fault}`)
  }

  return {
    put: (key, bytes, mediaType) => {
      const headers = { 'cache-control': CACHE_CONTROL, 'content-type': mediaType }
      return send('put', key, bytes, headers, [200])
    },
    remove: (key) => send('remove', key, NO_BYTES, {}, [200, 204, 404]),
    close: () => upstreams.destroy(),
  }
}
