/** [challenge]: the keys of three services, which share what a flood costs. */
import { powRules, powShape } from '../../../actors/agents/proof-of-work/settings.js'
import { breachShape } from '../../../actors/identity/passwords/settings.js'
import { captchaRules, captchaShape } from '../../../actors/identity/sign-in/limits/settings.js'
import { section } from '../../kernel/config/section.js'

export const challengeSettings = section(
  'challenge',
  { ...captchaShape, ...breachShape, ...powShape },
  { about: 'Protection against automated abuse.', rules: [...captchaRules, ...powRules] },
)
