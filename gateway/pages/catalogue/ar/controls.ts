/** Arabic texts of controls, consent and delegation pages, and the sections of the account page. */
import type { controls as english } from '../en/controls.js'

export const controls: Readonly<Record<keyof typeof english, string>> = {
  'time.now': 'الآن',
  'control.reveal': 'إظهار كلمة المرور',
  'control.copy': 'نسخ',
  'control.copied': 'تم النسخ',
  'control.download': 'تنزيل',
  'control.print': 'طباعة',
  'codes.file': 'رموز استرداد {tenant}. يعمل كل رمز مرة واحدة.',
  'mfa.recovery.use': 'استخدام رمز استرداد',
  'mfa.recovery.code': 'رمز الاسترداد',
  'account.nav': 'أقسام هذه الصفحة',
  'account.security': 'الأمان',
  'account.email': 'عنوان البريد الإلكتروني',
  'account.confirmed': 'مؤكَّد',
  'account.unconfirmed': 'غير مؤكَّد',
  'account.codes': 'رموز الاسترداد',
  'account.codes.lead': 'تتيح لك تسجيل الدخول إذا فقدت العوامل الأخرى.',
  'account.password.set': 'لديك كلمة مرور.',
  'delegation.verified': 'تم التحقق: {domain}',
  'delegation.unverified': 'لم يتم التحقق',
  'delegation.verified.hint': 'ينتمي إلى المؤسسة التي تملك {domain}.',
  'delegation.unverified.hint': 'لا ينتمي إلى أي مؤسسة لها نطاق تم التحقق منه.',
  'delegation.time': 'المدة',
  'delegation.time.value': '{time}، أو إلى أن تبطله',
  'delegation.origin': 'طُلب من',
}
