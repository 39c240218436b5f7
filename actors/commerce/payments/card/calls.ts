/** Calls to the card provider, and what is stored of them. */
import type { Clock } from '../../../../runtime/kernel/clock.js'
import {
  abandonCardPayment,
  type CardPaymentRow,
  findCardPayment,
  nameCardPayment,
  noteFailedCall,
  markLookedUp,
} from '../../../../storage/commerce/card-payments.js'
import type { Database } from '../../../../storage/platform/sql.js'
import type { OrderName, PendingAnswer, TakeAnswer } from '../payment-provider.js'
import {
  type CardClient,
  KEY_REUSED,
  type Members,
  type ProviderAnswer,
  ProviderUnavailable,
} from './client.js'
import { inTenant } from '../../../platform/in-tenant.js'

/**
 * First delay before a worker looks a payment up. The delay doubles each time. Webhooks usually
 * arrive sooner.
 */
const ASK_AGAIN_MS_FIRST = 60_000
const ASK_AGAIN_MS_MAX = 900_000
/** Maximum number of idempotency keys tried in a row. */
const KEYS_MAX = 10

export type CardProviderNeeds = {
  readonly database: Database
  readonly clock: Clock
  readonly client: CardClient
  readonly webhookSecret: string
  /** Hosts of the provider's pages. An entry with a port allows that port only. */
  readonly checkoutHosts: readonly string[]
  /** Allows provider pages over http on loopback, for tests. Refused in production. */
  readonly plainHttp: boolean
  readonly clearingMs: number
}

/** The needs of one call of the provider. */
export type Calling = CardProviderNeeds & { readonly signal: AbortSignal }

/**
 * Sends a creation or a confirmation. The provider stores a server error under the idempotency
 * key, so the next call uses another key. A key whose first call had other parameters is replaced
 * immediately. Neither can take money twice: a creation takes none, and a confirmed payment is never
 * confirmed again.
 */
export async function send(
  calling: Calling,
  row: CardPaymentRow,
  path: string,
  params: Members,
  step: string,
): Promise<ProviderAnswer> {
  const { client, database, signal } = calling
  const { tenantId, failedCalls } = row
  const idempotencyKey = `svc_${row.chargeId}_${step}_${failedCalls}`
  try {
    return await client.call({ tenantId, method: 'POST', path, params, idempotencyKey, signal })
  } catch (error) {
    if (!(error instanceof ProviderUnavailable) || !error.isKept) throw error
    await database.tenant(tenantId, (tx) => noteFailedCall(tx, row))
    if (error.fault !== KEY_REUSED || failedCalls >= KEYS_MAX) throw error
    return send(calling, { ...row, failedCalls: failedCalls + 1 }, path, params, step)
  }
}

/** Sends a request that can be repeated without an idempotency key. */
export const post = (
  { client, signal }: Calling,
  { tenantId }: OrderName,
  path: string,
  params: Members = {},
) => client.call({ tenantId, method: 'POST', path, params, signal })

const known = (answer: ProviderAnswer): Members => {
  if (answer.tag === 'ok') return answer.object
  throw new Error(`the card provider refused a look-up: ${answer.code}`)
}

export const getCheckout = async (
  { client, signal }: Calling,
  { tenantId }: OrderName,
  id: string,
) => {
  const params = { expand: ['payment_intent'] }
  const path = `/v1/checkout/sessions/${id}`
  return known(await client.call({ tenantId, method: 'GET', path, params, signal }))
}

export const getPayment = async (
  { client, signal }: Calling,
  { tenantId }: OrderName,
  id: string,
) =>
  known(await client.call({ tenantId, method: 'GET', path: `/v1/payment_intents/${id}`, signal }))

/** @returns undefined when the provider does not know the object. */
export async function find(client: CardClient, path: string, signal: AbortSignal) {
  const answer = await client.call({ tenantId: '', method: 'GET', path, signal })
  const isMissing = answer.tag === 'refused' && answer.code === 'resource_missing'
  return isMissing ? undefined : known(answer)
}

/** Stores the id of the created object. @returns undefined when the object must not be used. */
export async function keep(
  { database }: Calling,
  { tenantId, chargeId }: CardPaymentRow,
  named: Pick<CardPaymentRow, 'checkoutId' | 'paymentId'>,
): Promise<CardPaymentRow | undefined> {
  return database.tenant(tenantId, async (tx) => {
    const kept = await nameCardPayment(tx, { tenantId, chargeId, ...named })
    if (kept !== undefined) return kept
    const now = await findCardPayment(tx, tenantId, chargeId)
    // Two concurrent callers received the response to the same creation.
    const same = now?.checkoutId === named.checkoutId && named.checkoutId !== null
    return same || (now?.paymentId === named.paymentId && named.paymentId !== null)
      ? now
      : undefined
  })
}

/** Fails the charge after the provider refused the creation: no payment exists, and none will. */
export async function refuseUnnamed(
  { database, clock, signal }: Calling,
  { tenantId, chargeId }: OrderName,
  code: string,
): Promise<TakeAnswer> {
  const abandoned = await inTenant(database, tenantId, { signal }, (tx) =>
    abandonCardPayment(tx, tenantId, chargeId, clock.now()),
  )
  if (abandoned === undefined) throw new Error('a payment has an id and was refused immediately')
  return { tag: 'refused', code }
}

export async function waiting(
  { database, clock, signal }: Calling,
  { tenantId, chargeId }: OrderName,
  sendTo: string | null,
): Promise<PendingAnswer> {
  const row = await inTenant(database, tenantId, { signal }, async (tx) => {
    await markLookedUp(tx, tenantId, chargeId)
    return findCardPayment(tx, tenantId, chargeId)
  })
  const pauseMs = ASK_AGAIN_MS_FIRST * 2 ** Math.min(row?.lookUps ?? 0, 10)
  const askAgainAt = new Date(clock.now().getTime() + Math.min(pauseMs, ASK_AGAIN_MS_MAX))
  return { tag: 'pending', sendTo, askAgainAt }
}
