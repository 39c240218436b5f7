/** What both sides of an x402 payment write into header fields. */

/** The id of the payment-identifier extension. */
export const PAYMENT_IDENTIFIER = 'payment-identifier'

/** Encodes JSON in base64, the form of every x402 header field. */
export function encodeField(message: unknown): string {
  return Buffer.from(JSON.stringify(message), 'utf8').toString('base64')
}
