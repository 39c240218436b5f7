/** Japanese texts of controls, consent and delegation pages, and the sections of the account page. */
import type { controls as english } from '../en/controls.js'

export const controls: Readonly<Record<keyof typeof english, string>> = {
  'time.now': 'たった今',
  'control.reveal': 'パスワードを表示',
  'control.copy': 'コピー',
  'control.copied': 'コピーしました',
  'control.download': 'ダウンロード',
  'control.print': '印刷',
  'codes.file': '{tenant} のリカバリーコード。各コードは 1 回しか使えません。',
  'mfa.recovery.use': 'リカバリーコードを使用',
  'mfa.recovery.code': 'リカバリーコード',
  'account.nav': 'このページのセクション',
  'account.security': 'セキュリティ',
  'account.email': 'メールアドレス',
  'account.confirmed': '確認済み',
  'account.unconfirmed': '未確認',
  'account.codes': 'リカバリーコード',
  'account.codes.lead': '他の認証方法を失ったときにログインできます。',
  'account.password.set': 'パスワードが設定されています。',
  'delegation.verified': '検証済み: {domain}',
  'delegation.unverified': '未検証',
  'delegation.verified.hint': '{domain} を所有する組織のエージェントです。',
  'delegation.unverified.hint': '検証済みドメインを持つ組織のエージェントではありません。',
  'delegation.time': '有効期間',
  'delegation.time.value': '{time}、または取り消すまで',
  'delegation.origin': 'リクエスト元',
}
