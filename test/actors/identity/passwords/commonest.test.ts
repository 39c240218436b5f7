import test from 'ava'
import {
  commonPasswords,
  loadCommonPasswords,
} from '../../../../actors/identity/passwords/commonest.js'

const common = await loadCommonPasswords()

for (const password of [
  'password1234',
  'Password1234',
  'PASSWORD1234',
  'qwertyuiop12',
  '123456789012',
  '1qaz2wsx3edc',
  'administrator',
  'Administrator',
  'iloveyou1234',
  'welcome12345',
  'Password2026!',
  '!!!password!!',
  '\uff50assword1234',
]) {
  test(`${password} is among the most common passwords`, (t) => t.true(common.has(password)))
}

for (const password of [
  'correct horse battery staple',
  'a password of the harbour master',
  'the old password of ada',
  'dragon-of-the-harbour',
  'dragon84719283',
  '8f3kd92jfkq0',
]) {
  test(`${password} is not`, (t) => t.false(common.has(password)))
}

test('only the first 10,000 count as the core of a longer password', (t) => {
  const names = Array.from({ length: 10_001 }, (_, n) => `word${n.toString(36)}x`)
  const few = commonPasswords(names)
  t.true(few.has(`${names[9_999]!}2026!`))
  t.false(few.has(`${names[10_000]!}2026!`))
})
