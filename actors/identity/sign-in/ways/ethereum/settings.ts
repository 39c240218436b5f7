/** [siwe]: sign-in with Ethereum. */
import { z } from 'zod'
import { flag, list, seconds } from '../../../../../runtime/kernel/config/kinds.js'
import { section, type SettingsOf } from '../../../../../runtime/kernel/config/section.js'

export const siweSettings = section(
  'siwe',
  {
    enabled: flag(false).describe(
      'Users may link Ethereum accounts on their account page, and sign in with them.',
    ),
    chain_ids: list(z.int().min(1).max(Number.MAX_SAFE_INTEGER))
      .default([])
      .describe('Chain ids that a message may name (EIP-155). Empty: all.'),
    message_ttl_secs: seconds(300, 3_600).describe('How long a message can be signed and sent.'),
  },
  {
    about: 'Sign-in with Ethereum (ERC-4361), by externally owned accounts. Gives level 1 (aal1).',
  },
)

export type SiweSettings = SettingsOf<typeof siweSettings>
