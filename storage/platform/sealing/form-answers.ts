/** The sealed answers to forms that a browser may send again (actors/platform/sealed-answer.ts). */
import { removing } from '../portable/expiry.js'
import { execute, firstRow, type Transaction } from '../sql.js'

type FormAnswer = {
  readonly tenantId: string
  readonly formSha256: Uint8Array
  readonly answer: Uint8Array
  readonly expiresAt: Date
}

export const storeFormAnswer = (
  tx: Transaction,
  { tenantId, formSha256, answer, expiresAt }: FormAnswer,
) =>
  execute(tx, {
    name: 'form_answer.store',
    text: `insert into form_answers (tenant_id, form_sha256, answer, expires_at)
           values ($1, $2, $3, $4)`,
    values: [tenantId, Buffer.from(formSha256), Buffer.from(answer), expiresAt],
  })

/** The tenant of a form is unknown before, so the transaction crosses tenants. */
export const findFormAnswer = (tx: Transaction, formSha256: Uint8Array, now: Date) =>
  firstRow<Pick<FormAnswer, 'answer'>>(tx, {
    name: 'form_answer.find',
    text: 'select answer from form_answers where form_sha256 = $1 and expires_at > $2',
    values: [Buffer.from(formSha256), now],
  })

/** Deletes up to `limit` answers that expired before a time. */
export const removeExpiredAnswers = removing(
  'form_answer.remove_expired',
  'form_answers',
  'expires_at',
  '(tenant_id, form_sha256)',
)
