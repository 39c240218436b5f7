/** Egress calls with hostile upstreams, for the leak test. */
import { request } from 'undici'
import type { Canaries, Found } from '../service/canaries.js'
import { METRICS_TOKEN, until } from '../service/watch.js'

/** How an upstream leaks the secret. */
const HABITS = [
  '/headers',
  '/secrets/none',
  '/secrets/gzip',
  '/secrets/deflate',
  '/secrets/br',
  '/secrets/zstd',
  '/redirect',
  '/echo?a=b',
  '/reset-before-headers',
  '/reset-after-headers',
  '/reset-in-body',
  '/short-body',
  '/not-http',
  '/huge-headers',
  '/zipped',
] as const
/** Slow cases, tried once. */
const HEAVY_HABITS = [...HABITS, '/bomb'] as const

type Place = { readonly baseUrl: string }
export type LeakyCall = {
  readonly id: string
  readonly direct: string
  readonly delegated: string
  readonly upstream: string
  /** The body of the caller, which some upstreams echo. */
  readonly body: string
  readonly heavy: boolean
}

/** Calls with a credential in every way. @returns the leaked canaries. */
export async function proxied(
  { baseUrl }: Place,
  flock: Canaries,
  { id, direct, delegated, upstream, body, heavy }: LeakyCall,
): Promise<Found[]> {
  const found: Found[] = []
  async function send(where: string, path: string, token: string, headers: object, json?: object) {
    const answer = await request(new URL(path, baseUrl), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, ...headers },
      body: json === undefined ? body : JSON.stringify(json),
    }).catch(() => undefined)
    // Aborted before the first byte.
    if (answer === undefined) return { status: 0, text: '' }
    const text = await answer.body.text().catch(() => '')
    found.push(...flock.search(where, JSON.stringify(answer.headers) + text, ['body']))
    return { status: answer.statusCode, text }
  }
  for (const habit of heavy ? HEAVY_HABITS : HABITS) {
    for (const stream of [true, false]) {
      const url = upstream + habit
      const raw = await send(`egress of ${habit}`, '/v1/proxy/body', direct, {
        'x-svc-credential-id': id,
        'x-svc-method': 'POST',
        'x-svc-url': url,
        'x-svc-stream-response': String(stream),
      })
      const type = { 'content-type': 'application/json' }
      const asked = { credential_id: id, method: 'POST', url, body, stream }
      const viaDocument = await send(`proxy of ${habit}`, '/v1/proxy', delegated, type, asked)
      for (const { status, text } of habit === '/headers' ? [raw, viaDocument] : []) {
        if (status !== 200) throw new Error(text)
      }
    }
  }
  // Refused before it is sent, with a secret of the caller in it.
  const type = { 'content-type': 'application/json' }
  const whole = { credential_id: id, method: 'POST', url: `${upstream}/echo`, body }
  for (const fault of [
    { body_base64: Buffer.from(body).toString('base64') },
    { auth_scheme: 'header:x-other' },
    { url: `https://elsewhere.example/?token=${body}` },
    { url: `${upstream}/echo#${body}` },
    { headers: [['x-note', `${body}\r\nx: y`]] },
    { method: body },
    { unheard_of: body },
  ]) {
    const { status, text } = await send('refused', '/v1/proxy', delegated, type, {
      ...whole,
      ...fault,
    })
    if (status !== 400 && status !== 403) throw new Error(`${status}: ${text}`)
  }
  return found
}

export interface RunningCall {
  /** Aborts the call and waits until the service has noticed. */
  end(): Promise<void>
}

/** A call with an endless response. */
export async function callThatGoesOn(
  { baseUrl }: Place,
  { token, id, upstream }: { token: string; id: string; upstream: string },
): Promise<RunningCall> {
  const answer = await request(new URL('/v1/proxy/body', baseUrl), {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'x-svc-credential-id': id,
      'x-svc-method': 'GET',
      'x-svc-url': `${upstream}/silent-after-chunk`,
    },
  })
  if (answer.statusCode !== 200) throw new Error(await answer.body.text())
  return {
    async end() {
      answer.body.on('error', () => undefined).destroy()
      await until('the end of the call', async () => {
        const headers = { authorization: `Bearer ${METRICS_TOKEN}` }
        const metrics = await request(new URL('/metrics', baseUrl), { headers })
        return /^svc_egress_running(?:\{.*\})? 0$/m.test(await metrics.body.text())
      })
    },
  }
}
