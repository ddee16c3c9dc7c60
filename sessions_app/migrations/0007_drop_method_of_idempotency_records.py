from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('sessions_app', '0006_index_memory_by_run'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='idempotencyrecord',
            name='method',
        ),
    ]
