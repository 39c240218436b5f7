/** Metrics of wallets. */
import type { Counter, Registry } from 'prom-client'
import { counter } from '../../platform/metrics.js'

export type WalletsMetrics = { readonly requests: Counter<'outcome'> }

export function walletsMetrics(registry: Registry): WalletsMetrics {
  return {
    requests: counter(
      registry,
      'svc_wallet_requests_total',
      'Requests to sign with a wallet, by outcome: signed, or the code of the refusal.',
      ['outcome'],
    ),
  }
}
