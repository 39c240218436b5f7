/** `fetch` that pays sellers with the wallet of an agent (docs/guides/commerce/wallets.md). */
import type { Fetch } from './egress-fetch.js'
import { refusalOf, textMember } from './refusal.js'

const PATH = '/api/v1/wallet/x402-payments'
/** A lost answer of the service is asked for again, with the same idempotency key. */
const ATTEMPTS_MAX = 3

export type WalletFetchOptions = {
  /** The service. */
  readonly baseUrl: string
  /** A direct access token of the agent with `wallet:sign`. Asked for before each payment. */
  readonly token: string | (() => Promise<string> | string)
  readonly fetch?: typeof globalThis.fetch | undefined
}

/**
 * A `fetch` that answers 402 of x402 with a payment of the wallet, once per call, and returns the seller's next response.
 * Another 402 is returned as it is. The body of the call is read into memory, because it may be sent twice.
 * @throws ServiceRefusal (by the returned function) if the policy of the wallet refuses the payment.
 */
export function walletFetch({ baseUrl, token, ...options }: WalletFetchOptions): Fetch {
  const fetch = options.fetch ?? globalThis.fetch
  const address = new URL(PATH, baseUrl)

  async function sign(required: unknown, signal: AbortSignal): Promise<[string, string]> {
    const asked: RequestInit = {
      method: 'POST',
      headers: {
        authorization: `Bearer ${typeof token === 'string' ? token : await token()}`,
        'content-type': 'application/json',
        'idempotency-key': crypto.randomUUID(),
      },
      body: JSON.stringify({ payment_required: required }),
      redirect: 'error',
      signal,
    }
    for (let attempt = 1; ; attempt += 1) {
      try {
        const answer = await fetch(address, asked)
        if (answer.status !== 201) throw await refusalOf(answer, { method: 'POST', path: PATH })
        const body: unknown = await answer.json()
        return [textMember(body, 'header_name'), textMember(body, 'header_value')]
      } catch (error) {
        // fetch throws a TypeError when no answer arrives (Fetch standard, network error).
        if (!(error instanceof TypeError) || attempt === ATTEMPTS_MAX) throw error
      }
    }
  }

  return async (input, init) => {
    const call = new Request(input, init)
    const { url, method, signal } = call
    const body = call.body === null ? null : await call.arrayBuffer()
    const send = (headers: Headers) =>
      fetch(url, { method, headers, body, signal, redirect: call.redirect })
    const response = await send(call.headers)
    const required = response.status === 402 ? await termsOf(response) : undefined
    if (required === undefined) return response
    const [name, value] = await sign(required, signal)
    const headers = new Headers(call.headers)
    headers.set(name, value)
    await response.body?.cancel()
    return send(headers)
  }
}

/** PaymentRequired of a 402: the header of version 2, or the body of version 1. Undefined without either. */
async function termsOf(response: Response): Promise<unknown> {
  const field = response.headers.get('payment-required')
  try {
    const text =
      field === null
        ? await response.clone().text()
        : new TextDecoder().decode(Uint8Array.from(atob(field), (byte) => byte.charCodeAt(0)))
    const terms: unknown = JSON.parse(text)
    return typeof terms === 'object' && terms !== null && 'x402Version' in terms ? terms : undefined
  } catch {
    return undefined
  }
}
