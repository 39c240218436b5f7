/**
 * One seed for the properties of every test file, so that a run says the same as the one before it. Each test
 * process loads it first (ava.config.js). The long form draws a seed of its own: what it finds becomes a case.
 */
import { configureGlobal } from 'fast-check'

if (process.env['TEST_LONG'] !== '1') configureGlobal({ seed: 20_261_123 })
