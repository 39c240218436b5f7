import { createHmac, hkdfSync, timingSafeEqual } from 'node:crypto'

const MAX_AGE_SECS = 300
const SECRET_BYTES_MIN = 16
const DECIMAL = /^(0|[1-9][0-9]{0,14})$/
const VISIBLE = /^[!-~]{1,255}$/

/** `body` must be the bytes as received. Deduplicate accepted deliveries by x-svc-delivery. */
export function verify(
  headers: Readonly<Record<string, string | undefined>>,
  body: Uint8Array,
  secret: string,
  nowSecs = Math.floor(Date.now() / 1000),
): boolean {
  const suite = headers['x-svc-signature-suite'] ?? ''
  const signature = headers['x-svc-signature-256'] ?? ''
  const timestamp = headers['x-svc-timestamp'] ?? ''
  const maxAge = headers['x-svc-signature-max-age'] ?? ''
  const delivery = headers['x-svc-delivery'] ?? ''
  const event = headers['x-svc-event'] ?? ''
  if (Buffer.byteLength(secret) < SECRET_BYTES_MIN) return false
  if (suite !== 'svc-webhook-v1' || !/^sha256=[0-9a-f]{64}$/.test(signature)) return false
  if (!DECIMAL.test(timestamp) || !DECIMAL.test(maxAge)) return false
  if (!VISIBLE.test(delivery) || !VISIBLE.test(event)) return false

  const salt = 'svc:webhook-mac:v1'
  const key = Buffer.from(hkdfSync('sha256', secret, salt, 'svc-webhook-mac-v1', 32))
  const signed = `${suite}\n${timestamp}\n${maxAge}\n${delivery}\n${event}\n`
  const mac = createHmac('sha256', key).update(signed).update(body).digest()
  if (!timingSafeEqual(mac, Buffer.from(signature.slice('sha256='.length), 'hex'))) return false

  const ageSecs = nowSecs - Number(timestamp)
  return ageSecs >= 0 && ageSecs <= Math.min(Number(maxAge), MAX_AGE_SECS)
}
