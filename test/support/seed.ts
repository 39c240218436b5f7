/**
 * One seed for the property tests of every file, so that runs are reproducible. Each test process
 * loads it first (ava.config.js). The long form draws its own seed, and each fault that it finds
 * becomes a test case.
 */
import { configureGlobal } from 'fast-check'

if (process.env['TEST_LONG'] !== '1') configureGlobal({ seed: 20_261_123 })
