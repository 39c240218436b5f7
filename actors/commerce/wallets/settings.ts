/** [wallet]: wallets of agents (docs/reference/commerce.md, Wallets). */
import { count, flag } from '../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../runtime/kernel/config/section.js'
import { WINDOW_SECS_MAX, WINDOW_SECS_MIN } from './protocol.js'

export const walletSettings = section(
  'wallet',
  {
    enabled: flag(false).describe(
      'Agents may have wallets, which sign payments and transactions within a policy.',
    ),
    max_wallets_per_tenant: count(0, 0).describe('Wallets per tenant. 0 for no limit.'),
    default_window_secs: count(86_400, WINDOW_SECS_MIN, WINDOW_SECS_MAX).describe(
      'Window of a budget that names none.',
    ),
    max_authorization_secs: count(300, 10, 3_600).describe(
      'Longest validity of a signed payment. A seller that asks for more gets this.',
    ),
  },
  { about: 'Wallets of agents: keys, policies and budgets.' },
)

export type WalletSettings = SettingsOf<typeof walletSettings>
