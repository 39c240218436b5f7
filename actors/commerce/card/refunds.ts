/**
 * Refunds at the card provider. A refund whose answer was lost is looked up by its metadata before it is
 * made again, because the provider forgets idempotency keys after a day.
 */
import { type CardClient, idIn, type Members, membersOf } from './client.js'
import { refundAnswer } from './objects.js'
import type { DoneAnswer, RefundOrder } from '../payments/payment-provider.js'

const PAGE_ROWS = 100
/** A charge with more refunds than this cannot be told apart from one without: refunds wait. */
const PAGES_MAX = 20

export type CardRefunds = ReturnType<typeof cardRefunds>

export function cardRefunds(client: CardClient) {
  return {
    /** The refund that was made under an id of ours. */
    async find(
      { tenantId, refundId, paymentId }: RefundOrder & { readonly paymentId: string },
      signal: AbortSignal,
    ): Promise<Members | undefined> {
      let after: string | undefined
      for (let page = 0; page < PAGES_MAX; page += 1) {
        const params = { payment_intent: paymentId, limit: PAGE_ROWS, starting_after: after }
        const answer = await client.call({
          tenantId,
          method: 'GET',
          path: '/v1/refunds',
          params,
          signal,
        })
        if (answer.tag !== 'ok') throw new Error(`refunds cannot be listed: ${answer.code}`)
        const { data, has_more: more } = answer.object
        if (!Array.isArray(data)) throw new Error('the card provider answered without refunds')
        const rows = (data as unknown[]).map((row) => membersOf(row) ?? {})
        const made = rows.find((row) => membersOf(row['metadata'])?.['svc_refund_id'] === refundId)
        if (made !== undefined || more !== true) return made
        after = idIn(rows.at(-1)?.['id'])
        if (after === undefined) throw new Error('the card provider listed refunds without ids')
      }
      throw new Error('the payment has too many refunds to look through')
    },

    async make(
      order: RefundOrder & { readonly paymentId: string; readonly amount: number },
      signal: AbortSignal,
    ): Promise<DoneAnswer> {
      const { paymentId, amount, refundId, chargeId, tenantId } = order
      const answer = await client.call({
        tenantId,
        method: 'POST',
        path: '/v1/refunds',
        params: {
          payment_intent: paymentId,
          amount,
          metadata: { svc_refund_id: refundId, svc_charge_id: chargeId, svc_tenant_id: tenantId },
        },
        idempotencyKey: `svc_refund_${refundId}`,
        signal,
      })
      if (answer.tag === 'refused') return { tag: 'refused', code: answer.code }
      return refundAnswer(answer.object)
    },
  }
}
