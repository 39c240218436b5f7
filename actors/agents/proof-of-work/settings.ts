/** [challenge]: proofs of work and challenges of agents. */
import { count, seconds } from '../../../runtime/kernel/config/kinds.js'
import type { RulesOf } from '../../../runtime/kernel/config/section.js'

export const powShape = {
  pow_difficulty_bits: count(20, 1, 28).describe('Leading zero bits of a proof of work.'),
  pow_trickle_per_minute: count(120, 1, 1_000_000).describe(
    'Registration starts per minute, tenant and process without added difficulty.',
  ),
  pow_flood_bits_max: count(4, 0, 8).describe(
    'Most bits added to pow_difficulty_bits, one per doubling above pow_trickle_per_minute.',
  ),
  pow_min_duration_secs: count(2, 0, 60).describe('Minimum time between challenge and proof.'),
  pow_ttl_secs: seconds(300, 3_600).describe('Lifetime of a proof-of-work challenge.'),
  pow_max_invalid: count(10, 1, 1_000).describe('Invalid proofs after which a challenge expires.'),
  agent_challenge_ttl_secs: seconds(120, 600).describe('Lifetime of a login challenge.'),
}

export const powRules: RulesOf<typeof powShape> = [
  {
    keys: ['pow_min_duration_secs', 'pow_ttl_secs'],
    holds: (challenge) => challenge.pow_min_duration_secs < challenge.pow_ttl_secs,
    rule: 'be less than challenge.pow_ttl_secs',
    fix: 'lower pow_min_duration_secs or raise pow_ttl_secs',
  },
]
