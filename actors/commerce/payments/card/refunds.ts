/**
 * Refunds at the card provider. When the response to a refund was lost, the refund is looked up by
 * its metadata before it is repeated, because the provider keeps idempotency keys for one day only.
 */
import { type CardClient, idIn, type Members, membersOf } from './client.js'
import { refundAnswer } from './objects.js'
import type { DoneAnswer, RefundOrder } from '../payment-provider.js'

const PAGE_ROWS = 100
/**
 * Maximum number of result pages that are searched. Beyond it a missing refund cannot be proved, so
 * the refund stays pending.
 */
const PAGES_MAX = 20

export function cardRefunds(client: CardClient) {
  return {
    /** Finds the refund that was created under our refund id. */
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
        if (!Array.isArray(data)) throw new Error('the card provider returned no list of refunds')
        const rows = (data as unknown[]).map((row) => membersOf(row) ?? {})
        const existing = rows.find(
          (row) => membersOf(row['metadata'])?.['svc_refund_id'] === refundId,
        )
        if (existing !== undefined || more !== true) return existing
        after = idIn(rows.at(-1)?.['id'])
        if (after === undefined) throw new Error('the card provider returned refunds without ids')
      }
      throw new Error('the payment has too many refunds to search')
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
