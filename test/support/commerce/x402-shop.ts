/** A service that sells payment links by x402, with a chain, a facilitator and funded buyers. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { PrivateKeyAccount } from 'viem/accounts'
import { x402Client, x402HTTPClient } from '@x402/core/client'
import type { PaymentRequired } from '@x402/core/types'
import { ExactEvmScheme } from '@x402/evm/exact/client'
import { systemClock } from '../../../runtime/kernel/clock.js'
import { systemRandom } from '../../../runtime/kernel/random.js'
import {
  insertPaymentLink,
  insertPrice,
  type LinkX402,
} from '../../../storage/commerce/products.js'
import type { ChainProfile } from '../fleet/profiles.js'
import { newAccount, sharedChain, type TestChain } from './chain.js'
import { startFacilitator } from './facilitator.js'
import { chainEnvironment, CHAIN_ID, type ChainOptions, NETWORK, TOKEN_NAME } from './market.js'
import { type Merchant, merchantIn } from './merchant.js'
import { sharedService, type TestService, testService, type Transport } from '../service.js'
import { type Answer, callAt, type Json } from '../identity/tenant-agent.js'

const random = systemRandom(systemClock)
const QUERY = '?buyer_country=US&buyer_region=CA'
/** The price of merchantIn: 19.99 USD, and the same in units of a token with six decimals. */
export const PRICE_MINOR = 1_999
export const PRICE_ATOMIC = 19_990_000n

export type ShopOptions = ChainOptions & {
  /** A service that files share. The profile gives its chain options. */
  readonly profile?: ChainProfile | undefined
  readonly environment?: Readonly<Record<string, string>> | undefined
  readonly transport?: Transport | undefined
  /** Default: the node of the chain. */
  readonly rpcUrl?: string | undefined
}

const FINAL_WITHIN_MS = 60_000

async function repeated<Found>(
  send: () => Promise<Found>,
  isEnough: (found: Found) => boolean,
  withinMs = FINAL_WITHIN_MS,
): Promise<Found> {
  const endMs = Date.now() + withinMs
  for (;;) {
    const found = await send()
    if (isEnough(found) || Date.now() > endMs) return found
    await sleep(200)
  }
}

export interface Link {
  readonly id: string
  readonly tenantId: string
  readonly url: string
  readonly payTo: string
}

export async function openShop(options: ShopOptions) {
  const { profile, environment, transport } = options
  const chain = await sharedChain()
  const { places } = chain
  const { rpcUrl = places.rpcUrl } = options
  const facilitator = await startFacilitator(chain)
  const running =
    profile === undefined
      ? await testService({
          environment: { ...chainEnvironment({ ...places, rpcUrl }, options), ...environment },
          transport,
        })
      : await sharedService(profile, transport === undefined ? {} : { transport })
  const merchant = await merchantIn(running.db.database)
  /** The facilitator of this file gets the requests about payments to an address. */
  const receive = async (payTo: string, url = facilitator.url) => {
    const body = JSON.stringify({ payTo, facilitator: url })
    const { ok } = await fetch(places.facilitatorUrl, { method: 'POST', body })
    if (!ok) throw new Error('the facilitator of the runner takes no payee')
  }
  return {
    ...shopOf(running, merchant, chain, receive),
    running,
    chain,
    facilitator,
    merchant,
    receive,
    async close() {
      await running.end()
      await facilitator.close()
    },
  }
}

export type Shop = Awaited<ReturnType<typeof openShop>>

export function shopOf(
  running: TestService,
  merchant: Merchant,
  chain: TestChain,
  receive: (payTo: string) => Promise<void> = () => Promise.resolve(),
) {
  const { database } = running.db
  const { tenantId } = merchant

  /** A new link that pays to a new address. */
  async function link(
    change: {
      readonly x402?: LinkX402 | null
      readonly quantity?: number
      readonly metadata?: Json
      readonly priceId?: string
      readonly tenantId?: string
      readonly payTo?: string
    } = {},
  ): Promise<Link> {
    const payTo = change.payTo ?? newAccount().address
    const token = Buffer.from(random.bytes(16)).toString('base64url')
    const row = {
      id: random.uuid(),
      tenantId: change.tenantId ?? tenantId,
      token,
      priceId: change.priceId ?? merchant.priceId,
      quantity: change.quantity ?? 1,
      metadata: change.metadata ?? { order: '1234' },
      x402: change.x402 === undefined ? { network: NETWORK, pay_to: payTo } : change.x402,
      createdAt: systemClock.now(),
    }
    await receive(row.x402?.pay_to ?? payTo)
    await database.tenant(row.tenantId, (tx) => insertPaymentLink(tx, row))
    const path = `/api/v1/public/commerce/payment-links/${token}/x402`
    return { id: row.id, tenantId: row.tenantId, url: path, payTo }
  }

  async function price(amountMinor: number, currency = 'USD', interval: 'month' | null = null) {
    const id = random.uuid()
    await database.tenant(tenantId, (tx) =>
      insertPrice(tx, {
        id,
        tenantId,
        productId: merchant.productId,
        amountMinor,
        currency,
        interval,
        intervalCount: interval === null ? null : 1,
        createdAt: systemClock.now(),
      }),
    )
    return id
  }

  /** A buyer with enough money for `payments` payments. */
  async function buyer(payments = 10): Promise<PrivateKeyAccount> {
    const account = newAccount()
    if (payments > 0) await chain.mint(account.address, PRICE_ATOMIC * BigInt(payments))
    return account
  }

  const get = ({ url }: Link, query = QUERY): Promise<Answer> =>
    callAt(running.baseUrl, url + query)

  const post = (
    { url }: Link,
    proof?: string,
    headers: Record<string, string> = {},
  ): Promise<Answer> =>
    callAt(running.baseUrl, url + QUERY, {
      method: 'POST',
      headers: { ...(proof === undefined ? {} : { 'payment-signature': proof }), ...headers },
    })

  /** The payload that the public client library creates for a challenge. */
  async function payload(who: PrivateKeyAccount, to: Link): Promise<Json> {
    const { headers } = await get(to)
    const client = clientOf(who)
    const http = new x402HTTPClient(client)
    const required = http.getPaymentRequiredResponse((name) => headers.get(name))
    return (await client.createPaymentPayload(required as PaymentRequired)) as unknown as Json
  }

  const proof = async (who: PrivateKeyAccount, to: Link) => encode(await payload(who, to))

  /** Sends the same proof until it gets a final response. */
  function final(to: Link, sent: string, withinMs = FINAL_WITHIN_MS): Promise<Answer> {
    return repeated(
      () => post(to, sent),
      ({ status }) => status !== 503,
      withinMs,
    )
  }

  /** Sends the same proof until there is a charge: on a busy machine the verification can take too long. */
  function charged(to: Link, sent: string): Promise<Answer> {
    const isCharged = ({ status, body }: Answer) => status !== 503 || 'charge_id' in body
    return repeated(() => post(to, sent), isCharged)
  }

  /** `fetch` of a client that sends the same proof again while the outcome is not known. */
  const patientFetch: typeof fetch = (input, init) =>
    repeated(
      () => fetch(input instanceof Request ? input.clone() : input, init),
      ({ status }) => status !== 503,
    )

  return { link, price, buyer, get, post, payload, proof, final, charged, patientFetch }
}

/** The public client, which pays any price. */
export function clientOf(who: PrivateKeyAccount): x402Client {
  return x402Client.fromConfig({
    schemes: [{ network: NETWORK, client: new ExactEvmScheme(who) }],
    spendControls: false,
  })
}

export function encode(payload: unknown): string {
  return Buffer.from(JSON.stringify(payload)).toString('base64')
}

export function decode(field: string | null): Json {
  if (field === null) throw new Error('the field is missing')
  return JSON.parse(Buffer.from(field, 'base64').toString()) as Json
}

/** Signs an authorization as a payer would, with any terms. */
export async function authorize(
  who: PrivateKeyAccount,
  terms: {
    readonly token: string
    readonly to: string
    readonly value: bigint
    readonly validAfter?: bigint
    readonly validBefore?: bigint
    readonly nonce?: `0x${string}`
    readonly name?: string
    readonly chainId?: number
  },
) {
  const nowSecs = BigInt(Math.floor(Date.now() / 1000))
  const message = {
    from: who.address,
    to: terms.to as `0x${string}`,
    value: terms.value,
    validAfter: terms.validAfter ?? 0n,
    validBefore: terms.validBefore ?? nowSecs + 60n,
    nonce: terms.nonce ?? (`0x${Buffer.from(random.bytes(32)).toString('hex')}` as const),
  }
  const signature = await who.signTypedData({
    domain: {
      name: terms.name ?? TOKEN_NAME,
      version: '2',
      chainId: terms.chainId ?? CHAIN_ID,
      verifyingContract: terms.token as `0x${string}`,
    },
    types: {
      TransferWithAuthorization: [
        { name: 'from', type: 'address' },
        { name: 'to', type: 'address' },
        { name: 'value', type: 'uint256' },
        { name: 'validAfter', type: 'uint256' },
        { name: 'validBefore', type: 'uint256' },
        { name: 'nonce', type: 'bytes32' },
      ],
    },
    primaryType: 'TransferWithAuthorization',
    message,
  })
  const authorization = Object.fromEntries(
    Object.entries(message).map(([name, value]) => [name, String(value)]),
  )
  return { signature, authorization }
}
