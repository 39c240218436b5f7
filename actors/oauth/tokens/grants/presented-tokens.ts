/** A token exchange whose tokens were found to be good. */
import type { ReadToken } from '../issue/access-token.js'
import type { ExchangeVerdict, Exchanger } from './token-exchange-rules.js'
import type { OAuthRefused } from '../protocol.js'

/** The tokens of a request that were found to be good, and who asks. */
export type Presented = {
  readonly subject: ReadToken
  readonly exchanger: Exchanger
  readonly actor: ReadToken | null
  readonly verdict: Exclude<ExchangeVerdict, OAuthRefused>
  readonly mayAct: string | null
}
