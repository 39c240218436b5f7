/** What a wallet is about to sign: its effect, for the policy and the record, and how it is signed. */
import type { AskOptions } from '../../../runtime/kernel/actor.js'
import type { Compute } from '../../../runtime/kernel/threads/pool.js'
import type { Intent } from './policy.js'
import type { RequestInvalid } from './protocol.js'

export type WalletCompute = Compute<WalletModule>
export type WalletModule = typeof import('./compute.js')

export type Draft<Answer> = {
  readonly tag: 'draft'
  readonly intent: Intent
  readonly nonce: string
  /** Null for a transaction, which has no end. */
  readonly validBefore: Date | null
  readonly resource: string | null
  /** @param key 32 bytes, wiped by the caller. */
  sign(
    key: Uint8Array,
    context: Pick<AskOptions, 'signal' | 'share'>,
  ): Promise<
    { readonly tag: 'signature'; readonly hash: string; readonly answer: Answer } | RequestInvalid
  >
}
